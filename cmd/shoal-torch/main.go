// Command shoal-torch is the Go side of the suites torchpeer and torchloader of "shoal bench".
// PyTorch starts it as a multiprocessing child: as the peer of a connection, or as a worker of a
// DataLoader. Users should run
//
//	shoal bench torchpeer
//
// instead. If it is started by hand, it prints that advice. It is a separate program because
// package torch needs package net, which would make shoal dynamically linked.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/torch"
)

func main() {
	torch.Child{
		Functions: map[string]func(context.Context, python.Tuple, *python.Dict) error{"__main__.follow": followScript},
		Datasets:  map[string]torch.OpenDataset{"light": openLight, "jpeg": openJPEG},
	}.Main()
	fmt.Println("this program is started by PyTorch: run shoal bench torchpeer")
}
