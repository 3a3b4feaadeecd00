// The role slot (cores/roles/slot.py) as the CPU sees it: life cycle, one job at a time, counters.
//
// `role` says what is inside:
//
//   none      a role that is not modelled: what the slot refuses it refuses with the gateware's
//             status, everything else is answered NO_ROLE. That is the honest answer for ECG and
//             matrix multiply, whose gateware runs in the co-simulation only (docs/renode.md).
//   loopback  cores/roles/loopback: the result is the operand.
//
// `empty`: the gateware's slot is empty, too, and looks at neither switch nor alignment.
using System;

using Antmicro.Renode.Core;
using Antmicro.Renode.Exceptions;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    public class RoleSlot : RegisterBlock
    {
        public RoleSlot(IMachine machine, string registers, ulong frequency, string role = "none", bool empty = false, long size = 0x800) : base(machine, registers, size)
        {
            if(role != "none" && role != "loopback")
            {
                throw new ConstructionException("A role slot's model has role none or loopback, not '" + role + "'.");
            }
            this.role = role;
            this.empty = empty;
            this.frequency = frequency;
            OnRead("state", () => active ? 1UL : 0UL);
            OnRead("busy", () => busy ? 1UL : 0UL);
            OnWrite("start", Start);
            OnWrite("reset", _ => Abort());
            OnWrite("interrupt_status", _ => UpdateInterrupt());
        }

        public override void Reset()
        {
            busy = active = false;
            run++;
            base.Reset();
        }

        private void Start(ulong value)
        {
            if((value & 1) == 0 || busy)
            {
                return;
            }
            busy = true;
            Count("jobs");
            var operand = Value("operand_addr");
            var length = (int)Value("operand_length");
            var result = Value("result_addr");
            var room = (int)Value("result_room");
            var status = Refusal(result);
            if(status == Ok && role == "none")
            {
                status = NoRole;
            }
            active = status == Ok;
            // A stop of the machine's clock between start and answer would be seen by nobody, so
            // the answer waits for virtual time to pass.
            var cycles = active ? JobCycles + (ulong)length / BytesPerCycle : RefusalCycles;
            var mine = ++run;
            machine.ScheduleAction(TimeInterval.FromMicroseconds(Math.Max(1, cycles * 1000000 / frequency)), _ =>
            {
                lock(sync)
                {
                    if(mine != run)
                    {
                        return;
                    }
                    if(active)
                    {
                        Count("cycles", cycles);
                        status = Loop(operand, length, result, room);
                    }
                    Finish(status, status == Ok ? length : 0);
                }
            });
        }

        private ulong Refusal(ulong result)
        {
            if(empty)
            {
                return NoRole;
            }
            if(Value("enable") == 0)
            {
                return Stopped;
            }
            return result % 16 != 0 ? BadLength : Ok;
        }

        // An operand that crosses a multiple of 1 MiB goes on at the one before (rule 4).
        private ulong Loop(ulong operand, int length, ulong result, int room)
        {
            if(length > room)
            {
                return NoRoom;
            }
            var bytes = new byte[length];
            for(var i = 0; i < length; i++)
            {
                var at = (operand & ~(Ring - 1)) | ((operand + (ulong)i) & (Ring - 1));
                bytes[i] = machine.SystemBus.ReadByte(at);
            }
            machine.SystemBus.WriteBytes(bytes, result);
            return Ok;
        }

        private void Abort()
        {
            if(active)
            {
                run++;
                Finish(Aborted, 0);
            }
        }

        private void Finish(ulong status, int length)
        {
            busy = active = false;
            Drive("result_status", status);
            Drive("result_length", (ulong)length);
            if(status != Ok)
            {
                Count("errors");
            }
            Drive("interrupt_status", Value("interrupt_status") | 1 | (Value("interrupt_enable") & 1) << 1);
            UpdateInterrupt();
        }

        private void UpdateInterrupt()
        {
            IRQ.Set((Value("interrupt_status") & 2) != 0);
        }

        // models/status.py; tests/test_renode_models.py compares them.
        private const ulong Ok = 0;
        private const ulong BadLength = 2;
        private const ulong NoRole = 4;
        private const ulong Stopped = 5;
        private const ulong NoRoom = 7;
        private const ulong Aborted = 6;

        private const ulong Ring = 1 << 20;
        private const ulong JobCycles = 40;
        private const ulong RefusalCycles = 5;
        private const ulong BytesPerCycle = 2;

        private readonly string role;
        private readonly bool empty;
        private readonly ulong frequency;
        private bool busy;
        private bool active;
        private int run;
    }
}
