//! A smoltcp host on a network device: a TCP peer for the simulated board that is not the kernel's.
//!
//!     peer DEVICE MAC ADDRESS BOARD client PORT SIZE...
//!     peer DEVICE MAC ADDRESS BOARD server PORT SIZE...
//!
//! Arguments, transfers and messages are those of sim/peers/lwip.c. The stack has 64 KB of buffer
//! each way and Reno's congestion control.

use std::env;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::exit;
use std::str::FromStr;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{wait, Device, Medium, RawSocket, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, Ipv4Address};

const CALL_TYPE: [u8; 2] = [0x88, 0xb5];
const CALL_MS: u64 = 700;
const PATIENCE: Duration = Duration::from_secs(120); // without a byte that moves
const BUFFER: usize = 65535;

fn fail(what: &str) -> ! {
    eprintln!("smoltcp: {what}");
    exit(1)
}

/// Byte `at` of transfer `number`; sim/peers/lwip.c has the same.
fn pattern(number: u32, at: u32) -> u8 {
    (at.wrapping_mul(2654435761).wrapping_add(number.wrapping_mul(40503)) >> 16) as u8
}

struct Host {
    device: RawSocket,
    interface: Interface,
    sockets: SocketSet<'static>,
    mac: EthernetAddress,
    ip: Ipv4Address,
    deadline: Instant,
}

impl Host {
    fn new(device: &str, mac: &str, ip: &str) -> Host {
        let mac = EthernetAddress::from_str(mac).unwrap_or_else(|_| fail("that is no MAC address"));
        let ip = Ipv4Address::from_str(ip).unwrap_or_else(|_| fail("that is no address"));
        let mut device = RawSocket::new(device, Medium::Ethernet).unwrap_or_else(|_| {
            fail("cannot open the device (as root, or in a network namespace of one's own)")
        });
        let mut config = Config::new(mac.into());
        config.random_seed = std::process::id() as u64;
        let mut interface = Interface::new(config, &mut device, Instant::now());
        interface.update_ip_addrs(|all| {
            all.push(IpCidr::new(IpAddress::Ipv4(ip), 24)).unwrap();
        });
        let deadline = Instant::now();
        Host { device, interface, sockets: SocketSet::new(vec![]), mac, ip, deadline }
    }

    /// One step of the stack, and a pause until there is something to do.
    fn step(&mut self) {
        let now = Instant::now();
        if now > self.deadline {
            fail("a transfer hangs");
        }
        self.interface.poll(now, &mut self.device, &mut self.sockets);
        let most = Duration::from_millis(20);
        let pause = self.interface.poll_delay(now, &self.sockets).map_or(most, |d| d.min(most));
        wait(self.device.as_raw_fd(), Some(pause)).unwrap_or_else(|_| fail("cannot wait"));
    }

    fn socket(&mut self) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Reno);
        self.sockets.add(socket)
    }

    fn tcp(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket>(handle)
    }

    fn connected(&mut self, board: Ipv4Address, port: u16, local: u16) -> SocketHandle {
        let handle = self.socket();
        let socket = self.sockets.get_mut::<Socket>(handle);
        let remote = (IpAddress::Ipv4(board), port);
        if socket.connect(self.interface.context(), remote, local).is_err() {
            fail("no connection");
        }
        while !self.tcp(handle).may_send() {
            if self.tcp(handle).state() == State::Closed {
                fail("no connection");
            }
            self.step();
        }
        handle
    }

    /// "Open a connection from your port `local` to my port `port`."
    fn call(&mut self, port: u16, local: u16) {
        let mut frame = [0u8; 60];
        frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 2]);
        frame[6..12].copy_from_slice(self.mac.as_bytes());
        frame[12..14].copy_from_slice(&CALL_TYPE);
        frame[14..18].copy_from_slice(&self.ip.octets());
        frame[18..20].copy_from_slice(&port.to_be_bytes());
        frame[20..22].copy_from_slice(&local.to_be_bytes());
        if let Some(token) = self.device.transmit(Instant::now()) {
            token.consume(frame.len(), |to| to.copy_from_slice(&frame));
        }
    }

    fn accepted(&mut self, port: u16, local: u16) -> SocketHandle {
        let handle = self.socket();
        loop {
            if self.tcp(handle).state() == State::Closed && self.tcp(handle).listen(port).is_err() {
                fail("cannot listen");
            }
            self.call(port, local);
            let until = Instant::now() + Duration::from_millis(CALL_MS);
            while Instant::now() < until {
                if self.tcp(handle).may_send() {
                    match self.tcp(handle).remote_endpoint() {
                        Some(from) if from.port == local => return handle,
                        _ => self.tcp(handle).abort(), // a second call of the transfer before
                    }
                }
                self.step();
            }
        }
    }

    /// Send while reading back; then close this way and wait for the board to do the same.
    fn exchange(&mut self, handle: SocketHandle, number: u32, size: u32) {
        let (mut sent, mut got) = (0u32, 0u32);
        let mut buffer = vec![0u8; 8192];
        let mut moved = 0;
        while got < size {
            if moved != sent as u64 + got as u64 {
                moved = sent as u64 + got as u64;
                self.deadline = Instant::now() + PATIENCE;
            }
            let socket = self.tcp(handle);
            if !socket.is_active() {
                fail("the connection ended before all had come back");
            }
            while sent < size && socket.can_send() {
                let want = buffer.len().min((size - sent) as usize);
                for (i, byte) in buffer[..want].iter_mut().enumerate() {
                    *byte = pattern(number, sent + i as u32);
                }
                sent += socket.send_slice(&buffer[..want]).unwrap_or_else(|_| fail("sending failed")) as u32;
            }
            while socket.can_recv() {
                let count = socket.recv_slice(&mut buffer).unwrap_or_else(|_| fail("reading failed"));
                for (i, byte) in buffer[..count].iter().enumerate() {
                    if *byte != pattern(number, got + i as u32) {
                        fail("a byte came back wrong");
                    }
                }
                got += count as u32;
            }
            self.step();
        }
        self.tcp(handle).close();
        while self.tcp(handle).may_recv() {
            if self.tcp(handle).can_recv() {
                fail("more came back than was sent");
            }
            self.step();
        }
        if !matches!(self.tcp(handle).state(), State::TimeWait | State::Closing | State::Closed) {
            fail("no orderly end");
        }
        self.wait(Duration::from_millis(50));
    }

    fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.step();
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if arguments.len() < 8 {
        fail("usage: peer DEVICE MAC ADDRESS BOARD client|server PORT SIZE...");
    }
    let board = Ipv4Address::from_str(&arguments[4]).unwrap_or_else(|_| fail("that is no address"));
    let port: u16 = arguments[6].parse().unwrap_or_else(|_| fail("that is no port"));
    let mut host = Host::new(&arguments[1], &arguments[2], &arguments[3]);
    let first = 49152 + (std::process::id() % 8000) as u16;
    for (number, size) in arguments[7..].iter().enumerate() {
        let size: u32 = size.parse().unwrap_or_else(|_| fail("that is no size"));
        let local = first + number as u16;
        let from = Instant::now();
        host.deadline = from + PATIENCE;
        let handle = match arguments[5].as_str() {
            "server" => host.accepted(port, local),
            _ => host.connected(board, port, local),
        };
        host.exchange(handle, number as u32, size);
        // The socket stays, so that a FIN that comes again is answered.
        println!("{size} bytes each way in {} ms", (Instant::now() - from).total_millis());
        let _ = std::io::stdout().flush();
    }
    println!("done");
    let _ = std::io::stdout().flush();
    // Until it is ended: the board may not have got the last acknowledgement.
    loop {
        host.deadline = Instant::now() + PATIENCE;
        host.step();
    }
}
