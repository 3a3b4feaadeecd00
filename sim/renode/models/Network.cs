// The board's link: Renode's network interface where the gateware has a MAC. It answers ARP,
// echoes ICMP (ping) and UDP port 7, and hands frames to `Nic`. TCP and LTL are not modelled.
using System;
using System.Collections.Generic;

using Antmicro.Renode.Core;
using Antmicro.Renode.Core.Structure;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Network;
using Antmicro.Renode.Peripherals.Network;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    // Addresses and main switch (block "shell").
    public class Shell : RegisterBlock
    {
        public Shell(IMachine machine, string registers, long size = 0x800) : base(machine, registers, size)
        {
        }

        // First byte on the wire first.
        public byte[] Mac
        {
            get
            {
                var bytes = new byte[6];
                for(var i = 0; i < 6; i++)
                {
                    bytes[i] = (byte)(Value("mac") >> 8 * i);
                }
                return bytes;
            }
        }

        public byte[] Ip
        {
            get
            {
                var ip = Value("ip");
                return new[] { (byte)(ip >> 24), (byte)(ip >> 16), (byte)(ip >> 8), (byte)ip };
            }
        }
    }

    // Block "mac": LiteEth's MAC, here with the host services behind it.
    public class Link : RegisterBlock, IMACInterface
    {
        public Link(IMachine machine, string registers, Shell shell, long size = 0x800) : base(machine, registers, size)
        {
            this.shell = shell;
        }

        public void ReceiveFrame(EthernetFrame frame)
        {
            // Without the FCS, which frames from a TAP device have.
            var bytes = frame.Bytes;
            Array.Resize(ref bytes, frame.Length);
            Action<byte[]> listeners;
            byte[] reply;
            lock(sync)
            {
                Received++;
                listeners = FrameForCpu;
                reply = Arp(bytes) ?? Ipv4(bytes);
            }
            if(listeners != null)
            {
                listeners(bytes);
            }
            if(reply != null)
            {
                Send(reply);
            }
        }

        public void Send(byte[] bytes)
        {
            EthernetFrame frame;
            if(bytes.Length < Smallest)
            {
                Array.Resize(ref bytes, Smallest);
            }
            if(!EthernetFrame.TryCreateEthernetFrame(bytes, false, out frame))
            {
                this.Log(LogLevel.Warning, "A frame of {0} bytes cannot be sent.", bytes.Length);
                return;
            }
            lock(sync)
            {
                Sent++;
            }
            var ready = FrameReady;
            if(ready != null)
            {
                ready(frame);
            }
        }

        // For the monitor: a frame without its FCS, as hexadecimal digits.
        public void SendHex(string digits)
        {
            var bytes = new byte[digits.Length / 2];
            for(var i = 0; i < bytes.Length; i++)
            {
                bytes[i] = Convert.ToByte(digits.Substring(2 * i, 2), 16);
            }
            Send(bytes);
        }

        public override void Reset()
        {
            Received = Sent = 0;
            base.Reset();
        }

        public MACAddress MAC
        {
            get
            {
                return MACAddress.FromBytes(shell.Mac);
            }

            set
            {
                this.Log(LogLevel.Warning, "Firmware sets the MAC address, in the shell's registers.");
            }
        }

        // Frames since reset, for the monitor.
        public uint Received { get; private set; }

        public uint Sent { get; private set; }

        public event Action<byte[]> FrameForCpu;

        public event Action<EthernetFrame> FrameReady;

        private byte[] Arp(byte[] f)
        {
            // RFC 826: a request for our address.
            if(f.Length < 42 || Word(f, 12) != 0x0806 || Word(f, 14) != 1 || Word(f, 16) != 0x0800 || Word(f, 20) != 1 || !Same(f, 38, shell.Ip))
            {
                return null;
            }
            var reply = new byte[42];
            Array.Copy(f, 0, reply, 0, 42);
            Array.Copy(f, 6, reply, 0, 6);
            Array.Copy(shell.Mac, 0, reply, 6, 6);
            reply[21] = 2;
            Array.Copy(shell.Mac, 0, reply, 22, 6);
            Array.Copy(shell.Ip, 0, reply, 28, 4);
            Array.Copy(f, 22, reply, 32, 10);
            return reply;
        }

        private byte[] Ipv4(byte[] f)
        {
            if(f.Length < 42 || Word(f, 12) != 0x0800 || f[14] != 0x45 || !Same(f, 0, shell.Mac) || !Same(f, 30, shell.Ip) || Sum(f, 14, 20) != 0xFFFF)
            {
                return null;
            }
            var length = Word(f, 16);
            if(length < 28 || length + 14 > f.Length || (Word(f, 20) & 0x3FFF) != 0)
            {
                return null;
            }
            var reply = new byte[14 + length];
            Array.Copy(f, 0, reply, 0, reply.Length);
            Array.Copy(f, 6, reply, 0, 6);
            Array.Copy(shell.Mac, 0, reply, 6, 6);
            Array.Copy(f, 26, reply, 30, 4);
            Array.Copy(shell.Ip, 0, reply, 26, 4);
            if(f[23] == 1 && f[34] == 8)
            {
                // RFC 792: an echo request becomes its reply.
                reply[34] = 0;
                Put(reply, 36, 0);
                Put(reply, 36, ~Sum(reply, 34, length - 20));
                return reply;
            }
            if(f[23] == 17 && Word(f, 36) == EchoPort)
            {
                Put(reply, 34, EchoPort);
                Put(reply, 36, Word(f, 34));
                return reply;
            }
            return null;
        }

        private static int Word(byte[] f, int at)
        {
            return f[at] << 8 | f[at + 1];
        }

        private static void Put(byte[] f, int at, int value)
        {
            f[at] = (byte)(value >> 8);
            f[at + 1] = (byte)value;
        }

        private static bool Same(byte[] f, int at, byte[] value)
        {
            for(var i = 0; i < value.Length; i++)
            {
                if(f[at + i] != value[i])
                {
                    return false;
                }
            }
            return true;
        }

        // RFC 1071.
        private static int Sum(byte[] f, int at, int length)
        {
            var sum = 0;
            for(var i = 0; i < length; i += 2)
            {
                sum += f[at + i] << 8 | (i + 1 < length ? f[at + i + 1] : 0);
            }
            while(sum > 0xFFFF)
            {
                sum = (sum & 0xFFFF) + (sum >> 16);
            }
            return sum;
        }

        private const int Smallest = 60;
        private const int EchoPort = 7;

        private readonly Shell shell;
    }

    // The port by which the CPU sends and receives frames (block "nic").
    public class Nic : RegisterBlock
    {
        public Nic(IMachine machine, string registers, Link link, long size = 0x800) : base(machine, registers, size)
        {
            this.link = link;
            link.FrameForCpu += Receive;
            OnRead("status", Status);
            OnRead("rx_data", RxData);
            OnWrite("rx_next", Next);
            OnWrite("tx_write", value =>
            {
                if(value != 0)
                {
                    var word = Value("tx_data");
                    for(var i = 0; i < 4; i++)
                    {
                        buffer[at++ % Largest] = (byte)(word >> 8 * i);
                    }
                }
            });
            OnWrite("send", Send);
            OnWrite("irq_enable", _ => Update());
        }

        public override void Reset()
        {
            frame = null;
            shown = at = 0;
            base.Reset();
        }

        private void Receive(byte[] f)
        {
            lock(sync)
            {
                if(f.Length < 38 || f[12] != 0x08 || f[13] != 0x00 || f[14] != 0x45 || f[23] != 17 || ((f[20] & 0x3F) | f[21]) != 0 || (ulong)(f[36] << 8 | f[37]) != Value("port"))
                {
                    return;
                }
                if(frame != null || f.Length > Largest)
                {
                    Count("dropped");
                    return;
                }
                frame = f;
                shown = 0;
                Count("received");
                Update();
            }
        }

        // Pending; the frame's end, and the bytes of the word that are beyond it.
        private ulong Status()
        {
            lock(sync)
            {
                if(frame == null)
                {
                    return 0;
                }
                var left = frame.Length - shown;
                return left > 4 ? 1UL : 1UL | 1UL << 2 | (ulong)(4 - left) << 3;
            }
        }

        private ulong RxData()
        {
            lock(sync)
            {
                ulong word = 0;
                for(var i = shown; i < shown + 4 && frame != null && i < frame.Length; i++)
                {
                    word |= (ulong)frame[i] << 8 * (i - shown);
                }
                return word;
            }
        }

        private void Next(ulong value)
        {
            lock(sync)
            {
                shown += value != 0 ? 4 : 0;
                if(frame != null && shown >= frame.Length)
                {
                    frame = null;
                    Update();
                }
                shown = frame == null ? 0 : shown;
            }
        }

        private void Send(ulong length)
        {
            at = 0;
            if(length < 14)
            {
                return;
            }
            var bytes = new byte[length];
            Array.Copy(buffer, bytes, (int)length);
            Count("sent");
            link.Send(bytes);
        }

        private void Update()
        {
            IRQ.Set(frame != null && Value("irq_enable") != 0);
        }

        private const int Largest = 1024;

        private readonly Link link;
        private readonly byte[] buffer = new byte[Largest];
        private byte[] frame;
        private int shown;
        private int at;
    }
}
