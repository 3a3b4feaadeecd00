// Registers of one block, from the description that the gateware's declaration gives.
//
// Every model of ours is this class or derived from it. `registers` is a list of words
// NAME:ACCESS:WIDTH[:RESET], in the order of the block; registers of more than 32 bits take two
// words, the low one first. What the bus sees is what soc/bridge.py builds:
//
//   ro    the current value (Drive, or a function given to OnRead)
//   rw    the value last written, in each word by itself
//   stb   reads 0; the write of the last word calls OnWrite's function with the whole value
//   w1c   reads the pending bits; the write of the last word clears those written as 1
//
// What lies behind the last register, up to the end of the region, reads 0 and ignores writes.
using System;
using System.Collections.Generic;
using System.Globalization;

using Antmicro.Renode.Core;
using Antmicro.Renode.Exceptions;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals.Bus;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    public class RegisterBlock : IDoubleWordPeripheral, IKnownSize
    {
        public RegisterBlock(IMachine machine, string registers, long size = 0x800)
        {
            this.machine = machine;
            Size = size;
            IRQ = new GPIO();
            foreach(var text in registers.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries))
            {
                Add(new Register(text));
            }
            if(words.Count * WordBytes > size)
            {
                throw new ConstructionException("Registers of a block do not fit its region.");
            }
        }

        public virtual void Reset()
        {
            foreach(var register in byName.Values)
            {
                register.Reset();
            }
            IRQ.Set(false);
        }

        public virtual uint ReadDoubleWord(long offset)
        {
            lock(sync)
            {
                Word word;
                if(!words.TryGetValue(offset, out word))
                {
                    this.Log(LogLevel.Warning, "Read at offset 0x{0:X}, where no register is.", offset);
                    return 0;
                }
                return (uint)(Current(word.Of) >> word.Low);
            }
        }

        public virtual void WriteDoubleWord(long offset, uint value)
        {
            lock(sync)
            {
                Word word;
                if(!words.TryGetValue(offset, out word))
                {
                    this.Log(LogLevel.Warning, "Write at offset 0x{0:X}, where no register is.", offset);
                    return;
                }
                Write(word.Of, word.Low, value);
            }
        }

        // For the monitor and for tests: the value of a register by its name.
        public ulong Show(string name)
        {
            lock(sync)
            {
                return Current(Named(name));
            }
        }

        // For the monitor and for tests: what a read-only register shows from now on.
        public void Drive(string name, ulong value)
        {
            lock(sync)
            {
                var register = Named(name);
                register.Value = value & register.Mask;
            }
        }

        public long Size { get; private set; }

        public GPIO IRQ { get; private set; }

        protected bool Has(string name)
        {
            return byName.ContainsKey(name);
        }

        protected ulong Value(string name)
        {
            return Named(name).Value;
        }

        protected void Count(string name, ulong by = 1)
        {
            Drive(name, Named(name).Value + by);
        }

        protected void OnRead(string name, Func<ulong> function)
        {
            Named(name).OnRead = function;
        }

        protected void OnWrite(string name, Action<ulong> function)
        {
            Named(name).OnWrite = function;
        }

        protected readonly IMachine machine;
        protected readonly object sync = new object();

        private const int WordBytes = 4;
        private const int WordBits = 32;

        private static ulong Current(Register register)
        {
            if(register.Access == "stb")
            {
                return 0;
            }
            return register.OnRead == null ? register.Value : register.OnRead() & register.Mask;
        }

        private static void Write(Register register, int low, uint value)
        {
            if(register.Access == "ro")
            {
                return;
            }
            var mask = 0xFFFFFFFFUL << low;
            register.Written = ((register.Written & ~mask) | ((ulong)value << low)) & register.Mask;
            var complete = low + WordBits >= register.Width;
            if(register.Access == "rw")
            {
                register.Value = register.Written;
            }
            else if(!complete)
            {
                return;
            }
            else if(register.Access == "w1c")
            {
                register.Value &= ~register.Written;
            }
            if(register.OnWrite != null)
            {
                register.OnWrite(register.Written);
            }
        }

        private void Add(Register register)
        {
            byName.Add(register.Name, register);
            for(var low = 0; low < register.Width; low += WordBits)
            {
                words.Add(words.Count * WordBytes, new Word { Of = register, Low = low });
            }
        }

        private Register Named(string name)
        {
            Register register;
            if(!byName.TryGetValue(name, out register))
            {
                throw new RecoverableException("This block has no register '" + name + "'.");
            }
            return register;
        }

        private readonly Dictionary<string, Register> byName = new Dictionary<string, Register>();
        private readonly Dictionary<long, Word> words = new Dictionary<long, Word>();

        private struct Word
        {
            public Register Of;
            public int Low;
        }

        private class Register
        {
            public Register(string text)
            {
                var parts = text.Split(':');
                if(parts.Length < 3 || parts.Length > 4)
                {
                    throw new ConstructionException("A register is NAME:ACCESS:WIDTH[:RESET], not '" + text + "'.");
                }
                Name = parts[0];
                Access = parts[1];
                if(Access != "ro" && Access != "rw" && Access != "stb" && Access != "w1c")
                {
                    throw new ConstructionException("Access of a register is ro, rw, stb or w1c, not '" + Access + "'.");
                }
                Width = int.Parse(parts[2], CultureInfo.InvariantCulture);
                if(Width < 1 || Width > 64)
                {
                    throw new ConstructionException("A register has 1 to 64 bits, not " + Width + ".");
                }
                Mask = Width == 64 ? ulong.MaxValue : (1UL << Width) - 1;
                ResetValue = parts.Length > 3 ? ulong.Parse(parts[3], CultureInfo.InvariantCulture) : 0;
                Reset();
            }

            // A word of a register that can be written keeps what is not written.
            public void Reset()
            {
                Value = ResetValue;
                Written = Access == "rw" ? ResetValue : 0;
            }

            public readonly string Name;
            public readonly string Access;
            public readonly int Width;
            public readonly ulong Mask;
            public readonly ulong ResetValue;
            public ulong Value;
            public ulong Written;
            public Func<ulong> OnRead;
            public Action<ulong> OnWrite;
        }
    }
}
