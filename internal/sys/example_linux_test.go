package sys_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A sealed file of a gigabyte costs nothing until a part of it is committed.
func Example() {
	f, err := sys.Memfd("arena")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	if err := sys.Resize(f, 1<<30); err != nil {
		fmt.Println(err)
		return
	}
	if err := sys.Seal(f); err != nil {
		fmt.Println(err)
		return
	}
	mem, err := sys.Map(f, 1<<30)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Unmap(mem)
	if err := sys.Commit(f, 4096, 8192); err != nil {
		fmt.Println(err)
		return
	}
	used, err := sys.Allocated(f)
	fmt.Println(used, err)
	// Output: 8192 <nil>
}
