// Shoal-torch is what PyTorch starts in the suites torchpeer and torchloader of shoal bench: the
// other side of a connection, and the workers of a DataLoader. It is a program of its own because
// package torch needs package net, which would make shoal dynamic.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/torch"
)

func main() {
	torch.Child{
		Functions: map[string]func(context.Context, python.Tuple, *python.Dict) error{"__main__.follow": follow},
		Datasets:  map[string]torch.OpenDataset{"light": openLight, "jpeg": openJPEG},
	}.Main()
	fmt.Println("shoal bench has PyTorch start this program: shoal bench torchpeer")
}
