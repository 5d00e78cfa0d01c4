// Package huggingface reads the data sets of Hugging Face's library datasets. The pickle of a
// worker has a Dataset, which names the Arrow files that it maps. Go maps the same files, so no
// sample is copied before it is part of a batch. The package knows a Dataset without a format and
// one in the format of torch, whose columns are numbers, strings and lists of them.
package huggingface
