// Package hogwild trains one convolutional network on handwritten digits by several processes at
// once, without a lock: the known MNIST example of torch.multiprocessing, and what the command
// shoal hogwild does.
//
//	err := hogwild.Run(ctx, hogwild.Options{Workers: 2, Epochs: 1, BatchSize: 64, LR: 0.01, …, Stdout: os.Stdout})
//
// The root renders or reads the data set and makes the network, both in shared memory. Every worker
// passes over all of the data set in an order of its own, computes gradients of its own, and adds
// its steps to the one set of parameters while the others do the same (Niu et al., "Hogwild!",
// 2011). Afterwards the root tests the network, saves it, and says what the sharing cost: what was
// shared, what was copied, what each worker needed, and whether anything was left behind.
//
// The trap: the result is not reproducible to the last digit, whatever the seed, because the steps
// of the workers interleave as the machine pleases.
package hogwild
