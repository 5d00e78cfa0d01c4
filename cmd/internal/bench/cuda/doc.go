// Package cuda contains the suites cuda and cuda_ops of package bench. They measure tensors on a
// GPU against the driver and against PyTorch with CUDA IPC.
//
//	err := bench.Run(ctx, bench.Options{Suites: []string{"cuda"}, More: []bench.Suite{cuda.Suite}, Out: os.Stdout})
//
// It is a separate package because it loads the driver's library, which the static binary shoal
// must not do.
//
// On simulated devices the suites only show that the code runs. The values then measure the host
// and must not be reported.
package cuda
