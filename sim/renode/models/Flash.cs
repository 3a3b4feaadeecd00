// The SPI controller (cores/spi_controller.py, block "flash") with a NOR flash behind it: read,
// page program, erase of sectors and blocks, JEDEC ID, as a Winbond W25Q has them. With `file` the
// contents are read from that file, and written to it at every program and erase.
using System;
using System.IO;

using Antmicro.Renode.Core;
using Antmicro.Renode.Exceptions;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    public class Flash : RegisterBlock
    {
        public Flash(IMachine machine, string registers, int bytes, string file = "", uint identity = 0xEF4018, long size = 0x800) : base(machine, registers, size)
        {
            if(bytes < Sector || bytes % Sector != 0)
            {
                throw new ConstructionException("A flash has a multiple of 4096 bytes, not " + bytes + ".");
            }
            this.file = file;
            this.identity = identity;
            cells = new byte[bytes];
            Fill(0, bytes);
            if(file != "" && File.Exists(file))
            {
                var found = File.ReadAllBytes(file);
                Array.Copy(found, cells, Math.Min(found.Length, bytes));
            }
            OnWrite("control", value => Select((value & 1) != 0));
            OnWrite("send", Send);
            OnRead("received", () => last);
        }

        // The flash keeps its contents, as it does when the board starts anew.
        public override void Reset()
        {
            Select(false);
            last = 0;
            base.Reset();
        }

        private void Select(bool on)
        {
            if(on == selected)
            {
                return;
            }
            selected = on;
            if(!on)
            {
                Execute();
            }
            count = 0;
        }

        private void Send(ulong value)
        {
            if((value & Go) == 0)
            {
                return;
            }
            last = selected ? Exchange((byte)value) : (byte)0xFF;
        }

        private byte Exchange(byte value)
        {
            var position = count++;
            if(position == 0)
            {
                command = value;
                address = 0;
                written = 0;
                return 0xFF;
            }
            switch(command)
            {
            case JedecId:
                return position <= 3 ? (byte)(identity >> 8 * (3 - position)) : (byte)0xFF;
            case ReadStatus:
                return enabled ? WriteEnabled : (byte)0;
            }
            if(position <= 3)
            {
                address = address << 8 | value;
                return 0xFF;
            }
            if(command == Read)
            {
                return cells[(address + position - 4) % cells.Length];
            }
            if(command == Program)
            {
                page[written++ % PageBytes] = value;
            }
            return 0xFF;
        }

        // A command takes effect when the flash is deselected after it.
        private void Execute()
        {
            if(count == 0)
            {
                return;
            }
            if(command == EnableWrite)
            {
                enabled = true;
                return;
            }
            var writes = command == Program || command == EraseSector || command == EraseBlock || command == DisableWrite;
            if(writes && enabled && count >= 4)
            {
                Change();
                if(file != "")
                {
                    File.WriteAllBytes(file, cells);
                }
            }
            if(writes)
            {
                enabled = false;
            }
        }

        private void Change()
        {
            address %= cells.Length;
            if(command == Program)
            {
                // Of more bytes than a page has the last ones count, and it wraps within the page.
                var first = Math.Max(0, written - PageBytes);
                for(var i = first; i < written; i++)
                {
                    cells[(address & ~(PageBytes - 1)) | ((address + i) & (PageBytes - 1))] &= page[i % PageBytes];
                }
            }
            else if(command == EraseSector)
            {
                Fill(address & ~(Sector - 1), Sector);
            }
            else if(command == EraseBlock)
            {
                Fill(address & ~(Block - 1), Math.Min(Block, cells.Length));
            }
        }

        private void Fill(int from, int length)
        {
            for(var i = 0; i < length; i++)
            {
                cells[from + i] = 0xFF;
            }
        }

        private const ulong Go = 1 << 8;
        private const byte Program = 0x02;
        private const byte Read = 0x03;
        private const byte DisableWrite = 0x04;
        private const byte ReadStatus = 0x05;
        private const byte EnableWrite = 0x06;
        private const byte EraseSector = 0x20;
        private const byte JedecId = 0x9F;
        private const byte EraseBlock = 0xD8;
        private const byte WriteEnabled = 2;
        private const int PageBytes = 256;
        private const int Sector = 4096;
        private const int Block = 65536;

        private readonly string file;
        private readonly uint identity;
        private readonly byte[] cells;
        private readonly byte[] page = new byte[PageBytes];
        private bool selected;
        private bool enabled;
        private byte command;
        private byte last;
        private int address;
        private int count;
        private int written;
    }
}
