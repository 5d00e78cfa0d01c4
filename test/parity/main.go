// Parity writes docs/parity.md from docs/parity.txt: each public name of torch.multiprocessing and
// of multiprocessing, its counterpart here, and the test that proves it. It writes
// docs/acceptance.md from docs/acceptance.txt likewise. It fails if a test or a Go name of a table
// does not exist.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../..

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	for _, p := range pages {
		text, err := p.render(root)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "docs", p.name+".md"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "parity:", err)
			os.Exit(1)
		}
	}
}
