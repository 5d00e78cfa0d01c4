// Command parity generates docs/parity.md from docs/parity.txt: each public name of
// torch.multiprocessing and multiprocessing, its counterpart in Shoal, and the test that verifies
// it. It generates docs/acceptance.md from docs/acceptance.txt in the same way.
//
//	go run ./test/parity [ROOT]
//
// It prints an error and exits with a nonzero status if a table refers to a test or a Go name that
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
