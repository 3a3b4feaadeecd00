// The DRAM's initialization port, and the watchdog.
using System;

using Antmicro.Renode.Core;
using Antmicro.Renode.Peripherals.Timers;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Peripherals.Trebuchet
{
    // LiteDRAM's DFI injector, by which liblitedram initializes and trains the DRAM. The memory
    // itself is Renode's and needs neither; the registers keep what is written.
    public class Dfi : RegisterBlock
    {
        public Dfi(IMachine machine, string registers, long size = 0x800) : base(machine, registers, size)
        {
            for(var phase = 0; Has("dfii_pi" + phase + "_command_issue"); phase++)
            {
                OnRead("dfii_pi" + phase + "_command_issue", () => 0);
            }
        }
    }

    // soc/watchdog.py: an interrupt, and a restart some milliseconds after it, when nobody feeds it.
    // No restart clears `fired`.
    public class Watchdog : RegisterBlock
    {
        public Watchdog(IMachine machine, string registers, long size = 0x800) : base(machine, registers, size)
        {
            warning = Timer("warning", Warn);
            restart = Timer("restart", Restart);
            OnWrite("period", _ => Feed());
            OnRead("feed", () => 0);
            OnWrite("feed", _ => Feed());
            OnRead("forget", () => 0);
            OnWrite("forget", value => fired &= (value & 1) == 0);
            OnRead("fired", () => fired ? 1UL : 0UL);
            OnRead("ev_pending", () => pending ? 1UL : 0UL);
            OnWrite("ev_pending", value =>
            {
                pending &= (value & 1) == 0;
                Update();
            });
            OnWrite("ev_enable", _ => Update());
        }

        public override void Reset()
        {
            warning.Enabled = restart.Enabled = false;
            pending = false;
            base.Reset();
        }

        private LimitTimer Timer(string name, Action reached)
        {
            var timer = new LimitTimer(machine.ClockSource, 1000, this, name, workMode: WorkMode.OneShot, eventEnabled: true);
            timer.LimitReached += reached;
            return timer;
        }

        private void Feed()
        {
            var period = Value("period");
            Start(warning, period >= WarningMs ? period - WarningMs + 1 : 0);
            Start(restart, period);
        }

        private static void Start(LimitTimer timer, ulong milliseconds)
        {
            timer.Enabled = false;
            if(milliseconds != 0)
            {
                timer.Limit = milliseconds;
                timer.ResetValue();
                timer.Enabled = true;
            }
        }

        private void Warn()
        {
            pending = true;
            Update();
        }

        private void Restart()
        {
            fired = true;
            machine.RequestReset();
        }

        private void Update()
        {
            IRQ.Set(pending && (Value("ev_enable") & 1) != 0);
        }

        private const ulong WarningMs = 8;

        private readonly LimitTimer warning;
        private readonly LimitTimer restart;
        private bool fired;
        private bool pending;
    }
}
