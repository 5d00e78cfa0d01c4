// Package hogwild trains a convolutional network on handwritten digits with several processes and
// without locks. It implements shoal hogwild and corresponds to the MNIST example of
// torch.multiprocessing.
//
//	err := hogwild.Run(ctx, hogwild.Options{Workers: 2, Epochs: 1, BatchSize: 64, LR: 0.01, …, Stdout: os.Stdout})
//
// The root process renders or reads the data set and creates the network, both in shared memory.
// Every worker iterates over the whole data set in its own order, computes its own gradients and
// applies its steps to the shared parameters concurrently with the other workers (Niu et al.,
// "Hogwild!", 2011). Then the root process tests and saves the network and reports the cost of
// sharing: shared and copied bytes, the memory of each worker, and leaked blocks.
//
// Results are not bitwise reproducible, even with the same seed, because the workers' steps
// interleave nondeterministically.
package hogwild
