// The mailbox (cores/services/mailbox.py). The TCP engine in front of it is not modelled; its service
// is: a connection of the host to 127.0.0.1:`port` is one to the board's port 80. `port` 0 takes
// any free one (property Port); without the property nothing listens (-1).
using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using System.Threading;

using Antmicro.Renode.Core;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    public class Mailbox : RegisterBlock, IDisposable
    {
        public Mailbox(IMachine machine, string registers, int port = -1, long size = 0x800) : base(machine, registers, size)
        {
            OnRead("status", Status);
            OnRead("session", () => shown == null ? 0UL : (ulong)shown.Number);
            OnRead("request_length", () => (ulong)request.Length);
            OnRead("rx_data", RxData);
            OnWrite("tx_write", Append);
            OnWrite("send", Send);
            OnWrite("drop", Drop);
            OnWrite("irq_enable", _ => Update());
            if(port >= 0)
            {
                listener = new TcpListener(IPAddress.Loopback, port);
                listener.Start();
                Port = ((IPEndPoint)listener.LocalEndpoint).Port;
                new Thread(Accept) { IsBackground = true, Name = "mailbox" }.Start();
            }
        }

        // The TCP engine is reset with the mailbox: its connections are gone.
        public override void Reset()
        {
            lock(sync)
            {
                foreach(var guest in guests)
                {
                    guest.Close();
                }
                guests.Clear();
                shown = null;
                gone = false;
                partial = true;
                tag = 0;
                request = new byte[0];
                response.Clear();
                base.Reset();
            }
        }

        public void Dispose()
        {
            if(listener != null)
            {
                listener.Stop();
            }
            lock(sync)
            {
                foreach(var guest in guests)
                {
                    guest.Close();
                }
            }
        }

        public int Port { get; private set; }

        private void Accept()
        {
            while(true)
            {
                Socket socket;
                try
                {
                    socket = listener.AcceptSocket();
                }
                catch(Exception)
                {
                    return; // disposed
                }
                socket.NoDelay = true;
                var guest = new Guest(socket);
                new Thread(() => Receive(guest)) { IsBackground = true, Name = "mailbox guest" }.Start();
            }
        }

        // What comes from the host enters the machine between two of its steps.
        private void Receive(Guest guest)
        {
            lock(sync)
            {
                guest.Number = FreeNumber();
                guests.Add(guest);
            }
            var buffer = new byte[2048];
            while(true)
            {
                int count;
                try
                {
                    count = guest.Socket.Receive(buffer);
                }
                catch(Exception)
                {
                    Enter(guest, null);
                    return;
                }
                var bytes = new byte[count];
                Array.Copy(buffer, bytes, count);
                Enter(guest, bytes);
                if(count == 0)
                {
                    return;
                }
            }
        }

        // Events of the machine may come in another order than they were handed over, so what has
        // come waits in the guest's queue.
        private void Enter(Guest guest, byte[] bytes)
        {
            lock(sync)
            {
                guest.Incoming.Enqueue(bytes);
            }
            var now = new TimeStamp(default(TimeInterval), EmulationManager.ExternalWorld);
            machine.HandleTimeDomainEvent<Guest>(Take, guest, now);
        }

        // Zero bytes: its peer sends no more; none at all: the connection is gone.
        private void Take(Guest guest)
        {
            lock(sync)
            {
                while(guest.Incoming.Count > 0)
                {
                    var bytes = guest.Incoming.Dequeue();
                    if(!guests.Contains(guest))
                    {
                        continue;
                    }
                    if(bytes == null)
                    {
                        End(guest);
                    }
                    else if(bytes.Length == 0)
                    {
                        guest.Eof = true;
                    }
                    else
                    {
                        guest.Bytes.AddRange(bytes);
                    }
                }
                Next();
            }
        }

        private int FreeNumber()
        {
            var number = 0;
            while(guests.Exists(guest => guest.Number == number))
            {
                number++;
            }
            return number;
        }

        private void End(Guest guest)
        {
            guest.Close();
            guests.Remove(guest);
            if(guest == shown)
            {
                gone = true;
            }
        }

        // Show the next request that is complete, or as complete as it gets.
        private void Next()
        {
            if(shown == null)
            {
                for(var i = 0; i < guests.Count && shown == null; i++)
                {
                    var guest = guests[i];
                    int length;
                    var whole = Whole(guest, out length);
                    // What the firmware awaits is shown when the peer sends no more, even nothing.
                    var awaited = guest.Bytes.Count > 0 || guest.Expected != 0;
                    if(awaited && (whole || length == Largest || guest.Eof))
                    {
                        // A connection that had its turn waits behind the others.
                        guests.RemoveAt(i);
                        guests.Add(guest);
                        Show(guest, length, whole);
                    }
                    else if(guest.Eof && guest.Bytes.Count == 0)
                    {
                        End(guest);
                        i--;
                    }
                }
            }
            Update();
        }

        // Up to and with the first empty line; a binary request up to what firmware expects.
        private bool Whole(Guest guest, out int length)
        {
            var limit = Math.Min(guest.Bytes.Count, Largest);
            var expected = guest.Expected;
            if(expected == 0 && Has("expect") && limit > 0 && guest.Bytes[0] < FirstText)
            {
                expected = BinaryHeader;
            }
            if(expected != 0)
            {
                length = Math.Min(limit, expected);
                return length == expected;
            }
            for(length = 4; length <= limit; length++)
            {
                if(guest.Bytes[length - 4] == '\r' && guest.Bytes[length - 3] == '\n' && guest.Bytes[length - 2] == '\r' && guest.Bytes[length - 1] == '\n')
                {
                    return true;
                }
            }
            length = limit;
            return false;
        }

        private void Show(Guest guest, int length, bool whole)
        {
            shown = guest;
            gone = false;
            partial = !whole;
            tag = guest.Tag;
            request = guest.Bytes.GetRange(0, length).ToArray();
            guest.Bytes.RemoveRange(0, length);
            response.Clear();
            Count("requests");
        }

        private ulong Status()
        {
            return (shown != null ? Pending : 0) | (partial ? Partial : 0) | (gone ? Gone : 0) | (ulong)tag << TagOffset;
        }

        private ulong RxData()
        {
            ulong word = 0;
            for(var i = 0; i < 4; i++)
            {
                var at = (int)Value("rx_index") * 4 + i;
                word |= at < request.Length ? (ulong)request[at] << 8 * i : 0;
            }
            return word;
        }

        private void Append(ulong value)
        {
            if(value != 0 && shown != null && response.Count < ResponseBytes)
            {
                var word = Value("tx_data");
                for(var i = 0; i < 4; i++)
                {
                    response.Add((byte)(word >> 8 * i));
                }
            }
        }

        private void Send(ulong value)
        {
            if(shown == null || (value & Go) == 0)
            {
                return;
            }
            var length = Math.Min((int)(value & 0x1FFF), ResponseBytes);
            while(response.Count < length)
            {
                response.Add(0);
            }
            var close = (value & Close) != 0;
            if(gone)
            {
                Count("dropped");
            }
            else
            {
                var expect = Has("expect") ? (int)Value("expect") : 0;
                shown.Expected = expect & ((1 << TagInExpect) - 1);
                shown.Tag = expect >> TagInExpect;
                if(length != 0 || close)
                {
                    Count("responses");
                    Give(response.GetRange(0, length).ToArray(), close);
                }
            }
            shown = null;
            Next();
        }

        private void Give(byte[] bytes, bool close)
        {
            try
            {
                shown.Socket.Send(bytes);
                if(close)
                {
                    shown.Socket.Shutdown(SocketShutdown.Send);
                    guests.Remove(shown);
                    shown.CloseLater();
                }
            }
            catch(Exception error)
            {
                this.Log(LogLevel.Debug, "The peer is gone: {0}", error.Message);
                guests.Remove(shown);
            }
        }

        private void Drop(ulong value)
        {
            if(value == 0 || shown == null)
            {
                return;
            }
            Count("dropped");
            if(!gone)
            {
                shown.Abort();
                guests.Remove(shown);
            }
            shown = null;
            Next();
        }

        private void Update()
        {
            IRQ.Set(shown != null && Value("irq_enable") != 0);
        }

        private const ulong Pending = 1;
        private const ulong Partial = 2;
        private const ulong Gone = 4;
        private const ulong Close = 1 << 16;
        private const ulong Go = 1UL << 31;
        private const int Largest = 1024;
        private const int ResponseBytes = 4096;
        private const int TagOffset = 4;
        private const int TagInExpect = 11;
        private const int FirstText = 9;
        private const int BinaryHeader = 8;

        private readonly TcpListener listener;
        private readonly List<Guest> guests = new List<Guest>();
        private readonly List<byte> response = new List<byte>();
        private Guest shown;
        private bool partial = true; // no request has matched yet
        private bool gone;
        private int tag;
        private byte[] request = new byte[0];

        private class Guest
        {
            public Guest(Socket socket)
            {
                Socket = socket;
            }

            public void Close()
            {
                Socket.Close();
            }

            // As the engine does: its FIN is out, the peer's is waited for.
            public void CloseLater()
            {
                Socket.ReceiveTimeout = 2000;
            }

            public void Abort()
            {
                Socket.LingerState = new LingerOption(true, 0);
                Socket.Close();
            }

            public readonly Socket Socket;
            public readonly Queue<byte[]> Incoming = new Queue<byte[]>();
            public readonly List<byte> Bytes = new List<byte>();
            public int Number;
            public int Expected;
            public int Tag;
            public bool Eof;
        }
    }
}
