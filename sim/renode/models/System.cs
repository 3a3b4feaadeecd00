// What LiteX puts around the shell, where Renode's own models lack registers or behaviour.
using System;

using Antmicro.Renode.Core;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.UART;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    // LiteX's SoCController: either bit of `reset` starts the whole machine anew.
    public class Control : RegisterBlock
    {
        public Control(IMachine machine, string registers, long size = 0x800) : base(machine, registers, size)
        {
            OnRead("reset", () => 0);
            OnWrite("reset", value =>
            {
                if((value & 3) != 0)
                {
                    machine.RequestReset();
                }
            });
        }
    }

    // LiteX's identifier: a character in each word, then zeros.
    public class Identifier : IDoubleWordPeripheral, IKnownSize
    {
        public Identifier(IMachine machine, string text, long size = 0x800)
        {
            this.text = text;
            Size = size;
        }

        public uint ReadDoubleWord(long offset)
        {
            return offset / 4 < text.Length ? (uint)text[(int)(offset / 4)] : 0;
        }

        public void WriteDoubleWord(long offset, uint value)
        {
        }

        public void Reset()
        {
        }

        public long Size { get; private set; }

        private readonly string text;
    }

    // The shell's millisecond (soc/soc.py), here from virtual time.
    public class Tick : RegisterBlock
    {
        public Tick(IMachine machine, string registers, ulong frequency, long size = 0x800) : base(machine, registers, size)
        {
            this.frequency = frequency;
            OnRead("uptime", () => (Now() - start) / Math.Max(1, Value("period")));
        }

        public override void Reset()
        {
            base.Reset();
            start = Now();
        }

        private ulong Now()
        {
            ICPU cpu;
            if(machine.SystemBus.TryGetCurrentCPU(out cpu))
            {
                cpu.SyncTime();
            }
            return (ulong)(machine.ElapsedVirtualTime.TimeElapsed.TotalSeconds * frequency);
        }

        private readonly ulong frequency;
        private ulong start;
    }

    // IrqLine of soc/soc.py: the interrupts of the shell's blocks as one level.
    public class IrqLine : RegisterBlock, IGPIOReceiver
    {
        public IrqLine(IMachine machine, string registers, long size = 0x800) : base(machine, registers, size)
        {
            OnRead("ev_status", () => Level);
            OnRead("ev_pending", () => Level);
            OnWrite("ev_enable", _ => Update());
        }

        public void OnGPIO(int number, bool value)
        {
            lock(sync)
            {
                lines = value ? lines | 1u << number : lines & ~(1u << number);
                Update();
            }
        }

        public override void Reset()
        {
            lines = 0;
            base.Reset();
        }

        private void Update()
        {
            IRQ.Set((Level & Value("ev_enable")) != 0);
        }

        private ulong Level
        {
            get { return lines != 0 ? 1UL : 0UL; }
        }

        private uint lines;
    }

    // LiteX's UART with all of its registers. Writing 1 to the pending bit of `rx` takes the byte
    // that `rxtx` shows, and the bit rises again only when a byte comes into an empty buffer.
    // Whatever is written is sent at once.
    public class Uart : UARTBase, IDoubleWordPeripheral, IBytePeripheral, IKnownSize
    {
        public Uart(IMachine machine, uint baudRate = 115200, long size = 0x800) : base(machine)
        {
            BaudRateSetting = baudRate;
            Size = size;
            IRQ = new GPIO();
            pending = Tx;
        }

        public uint ReadDoubleWord(long offset)
        {
            lock(innerLock)
            {
                byte character;
                switch(offset)
                {
                case 0x00:
                    if(TryGetCharacter(out character, true))
                    {
                        shown = character;
                    }
                    return shown;
                case 0x08:
                    return Count == 0 ? 1u : 0u;
                case 0x0C:
                    return Tx | (Count == 0 ? 0u : Rx);
                case 0x10:
                    return pending;
                case 0x14:
                    return enabled;
                case 0x18:
                    return 1;
                case 0x1C:
                    return Count >= Depth ? 1u : 0u;
                default:
                    return 0;
                }
            }
        }

        public void WriteDoubleWord(long offset, uint value)
        {
            lock(innerLock)
            {
                byte character;
                switch(offset)
                {
                case 0x00:
                    TransmitCharacter((byte)value);
                    break;
                case 0x10:
                    pending &= ~value;
                    if((value & Rx) != 0)
                    {
                        TryGetCharacter(out character);
                    }
                    Update();
                    break;
                case 0x14:
                    enabled = value & (Tx | Rx);
                    Update();
                    break;
                }
            }
        }

        public byte ReadByte(long offset)
        {
            return offset % 4 == 0 ? (byte)ReadDoubleWord(offset) : (byte)0;
        }

        public void WriteByte(long offset, byte value)
        {
            if(offset % 4 == 0)
            {
                WriteDoubleWord(offset, value);
            }
        }

        public override void Reset()
        {
            base.Reset();
            pending = Tx;
            enabled = 0;
            shown = 0;
            Update();
        }

        public long Size { get; private set; }

        public GPIO IRQ { get; private set; }

        public override Bits StopBits
        {
            get { return Bits.One; }
        }

        public override Parity ParityBit
        {
            get { return Parity.None; }
        }

        public override uint BaudRate
        {
            get { return BaudRateSetting; }
        }

        protected override void CharWritten()
        {
            if(Count == 1)
            {
                pending |= Rx;
            }
            Update();
        }

        protected override void QueueEmptied()
        {
        }

        private void Update()
        {
            IRQ.Set((pending & enabled) != 0);
        }

        private const uint Tx = 1;
        private const uint Rx = 2;
        private const int Depth = 16;

        private readonly uint BaudRateSetting;
        private uint pending;
        private uint enabled;
        private byte shown;
    }
}
