// client HOST PORT TEXT: have a board's role work on TEXT; its result goes to standard output.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 4 {
		check(fmt.Errorf("use: client HOST PORT TEXT"))
	}
	board, err := net.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	check(err)
	defer board.Close()

	// A data message: type, 3 zero bytes, size of what follows, ID, operand.
	operand := []byte(os.Args[3])
	message := make([]byte, 12, 12+len(operand))
	message[0] = 3
	binary.LittleEndian.PutUint32(message[4:], uint32(4+len(operand)))
	binary.LittleEndian.PutUint32(message[8:], 1)
	_, err = board.Write(append(message, operand...))
	check(err)

	head := make([]byte, 8)
	_, err = io.ReadFull(board, head)
	check(err)
	payload := make([]byte, binary.LittleEndian.Uint32(head[4:]))
	_, err = io.ReadFull(board, payload)
	check(err)
	if head[0] == 2 { // a refusal: status, 3 zero bytes, ID
		check(fmt.Errorf("refused with status %d", payload[0]))
	}
	_, err = os.Stdout.Write(payload[4:]) // the ID comes first
	check(err)
}
