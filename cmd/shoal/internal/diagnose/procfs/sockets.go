package procfs

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Socket returns the inode of a socket, or "" if the file is not a socket.
func (f File) Socket() string {
	if rest, ok := strings.CutPrefix(f.Target, "socket:["); ok {
		return strings.TrimSuffix(rest, "]")
	}
	return ""
}

// TCPAddresses returns the addresses of a TCP socket of a process, or "" if the file is another
// one.
//
// https://www.kernel.org/doc/html/v6.12/networking/proc_net_tcp.html
func (s System) TCPAddresses(pid int, f File) (local, remote string) {
	inode := f.Socket()
	if inode == "" {
		return "", ""
	}
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		text, _ := os.ReadFile(s.path(pid, name))
		for line := range strings.Lines(string(text)) {
			if field := strings.Fields(line); len(field) > 9 && field[9] == inode {
				return parseAddress(field[1]), parseAddress(field[2])
			}
		}
	}
	return "", ""
}

// parseAddress parses an address such as 0100007F:1F90: words in the byte order of the machine,
// which is assumed to be little-endian, and the port. It returns a text such as 127.0.0.1:8080,
// or text itself if that is malformed.
func parseAddress(text string) string {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return text
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	addr, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return text
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)).String()
}
