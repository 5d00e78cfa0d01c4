// Package service loads batches on other machines, as tf.data service does.
//
//	func serve(l *data.Loader, key []byte) (*service.Host, error) {
//		return service.Listen(l, ":7070", service.HostOptions{Key: key})
//	}
//
//	func train(ctx context.Context, key []byte) error {
//		l, err := service.Dial(ctx, service.Options{Key: key}, "host:7070")
//		if err != nil {
//			return err
//		}
//		defer l.Close()
//		for batch, err := range l.Batches(ctx) {
//			if err != nil {
//				return err
//			}
//			batch.Close() // after the training step
//		}
//		return nil
//	}
//
// Start with [Listen], [Dial] and [Loader.Batches].
//
// Data hosts make the batches of a [data.Loader], and trainers fetch them.
//
// A batch is a function of the seed, the epoch and its number, so any data host can make it. The
// trainer requests batches by number and yields them in that order, so the result depends neither
// on the number of data hosts nor on their speed, and data hosts are stateless. When one is killed,
// stopped or partitioned, the trainer requests the missing batches from the others. It yields each
// batch once.
//
// With World 1 a trainer gets all batches of an epoch. With a larger World, batch i goes to the
// trainer with Rank i mod World. With Coordinated as well, all trainers have the same number of
// steps, and the batches of a step are consecutive, for example from one bucket. With Dynamic each
// batch goes to one of the connected trainers, which acknowledges it.
//
// Data hosts may also serve a data.Stream. Its batches have no numbers. The trainer plans them as a
// data.Loader does, and assigns each part to one data host, which keeps it open for the duration of
// the loop. If that host is lost, another one reads the part again up to the same position. World
// and Rank divide the parts.
//
// All data hosts must have the same data set and options; [Dial] verifies this. Tensors are copied
// from the data host's shared memory into the trainer's. Connections use package
// ipc/tcp: TLS 1.3, over which both sides prove that they know the key. See docs/cluster.md.
//
// The trap: the consumer must close each batch, as with a data.Loader. An unclosed batch occupies
// shared memory until the garbage collector finds it.
//
// This package imports package net, so a program that uses it links the C library if a C compiler
// is found.
package service
