package sys

import (
	"fmt"
	"os"
)

// Namespace returns the number of this process's namespace of the given kind, such as net or pid.
// It returns 0 if the number cannot be read.
func Namespace(kind string) (n uint64) {
	link, err := os.Readlink("/proc/self/ns/" + kind)
	if err == nil {
		fmt.Sscanf(link, kind+":[%d]", &n)
	}
	return n
}
