// Package cuda is the suite cuda of package bench: tensors on a GPU against the driver itself, and
// against PyTorch's CUDA IPC.
//
//	err := bench.Run(ctx, bench.Options{Suites: []string{"cuda"}, More: []bench.Suite{cuda.Suite}, Out: os.Stdout})
//
// It is a package of its own because it loads the driver's library, which the command shoal, a
// static binary, must not.
//
// The trap: on simulated devices it shows that all of it runs. The values are the host's, and mean
// nothing.
package cuda
