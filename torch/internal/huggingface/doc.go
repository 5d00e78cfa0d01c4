// Package huggingface reads the data sets of Hugging Face's library datasets: a Dataset, as it
// stands in the pickle of a worker, names the Arrow files that it maps. Go maps the same files, so
// no sample is copied before it is part of a batch. It knows a Dataset without a format and one in
// the format of torch, whose columns are numbers, strings and lists of them.
package huggingface
