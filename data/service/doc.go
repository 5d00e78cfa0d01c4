// Package service loads batches on other machines, as tf.data service does. Data hosts make the
// batches of a data.Loader, and trainers fetch them:
//
//	h, err := service.Listen(loader, ":7070", service.HostOptions{Key: key})              // on each data host
//	l, err := service.Dial(ctx, service.Options{Key: key}, "a:7070", "b:7070", "c:7070")  // on a trainer
//	for batch, err := range l.Batches(ctx) { … }                                          // as with a data.Loader
//
// A batch is a function of the seed, the epoch and its number, so any data host can make it. The
// trainer asks for batches by number, and yields them in the order of the numbers. So neither the
// number of data hosts nor their speed changes what it gets, and a data host has nothing to
// remember. When one is killed, stopped or cut off, the trainer asks the others for what it has not
// received. It yields each batch once.
//
// With World 1 a trainer gets all batches of an epoch. With a larger World each batch goes to one
// trainer: batch i to the one of Rank i mod World. With Coordinated as well, all trainers have the
// same number of steps, and a step's batches are neighbours, such as those of one bucket. With
// Dynamic each batch goes to one of the trainers that are there, which acknowledges it.
//
// Data hosts may serve a data.Stream as well. Its batches have no numbers. The trainer plans them
// as a data.Loader does, and has each part read by one data host, which keeps it open for that
// loop. If the data host is lost, another one reads the part again up to there. World and Rank
// divide the parts.
//
// All data hosts have the same data set and the same options; [Dial] compares. Tensors go by copy,
// from the data host's shared memory into that of the trainer. The connection is that of package
// ipc/tcp: TLS 1.3, on which both sides prove that they know the key. See docs/cluster.md.
//
// The trap: the consumer closes each batch, as with a data.Loader. What it does not close stays in
// its shared memory until the garbage collector finds it.
//
// This package imports package net, by which a program links the C library if a C compiler is
// found.
package service
