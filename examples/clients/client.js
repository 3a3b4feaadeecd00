// client.js HOST PORT TEXT: have a board's role work on TEXT; its result goes to standard output.
const net = require("node:net");

function die(what) {
  console.error(`client: ${what}`);
  process.exit(1);
}

const [host, port, text] = process.argv.slice(2);
if (text === undefined) die("use: client.js HOST PORT TEXT");

// A data message: type, 3 zero bytes, size of what follows, ID, operand.
const operand = Buffer.from(text);
const head = Buffer.alloc(12);
head[0] = 3;
head.writeUInt32LE(4 + operand.length, 4);
head.writeUInt32LE(1, 8);

let received = Buffer.alloc(0);
const board = net.connect(Number(port), host, () => board.write(Buffer.concat([head, operand])));
board.on("error", (error) => die(error.message));
board.on("end", () => die("the board closed the connection"));
board.on("data", (data) => {
  received = Buffer.concat([received, data]);
  if (received.length < 8 || received.length < 8 + received.readUInt32LE(4)) return;
  board.destroy();
  if (received[0] === 2) die(`refused with status ${received[8]}`); // then 3 zero bytes, ID
  process.stdout.write(received.subarray(12)); // the ID comes first
});
