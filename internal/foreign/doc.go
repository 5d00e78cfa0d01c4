// Package foreign gives packages of this module access to internals of package tensor that are not
// part of its public API. They provide memory from other sources, such as files and PyTorch
// storages.
package foreign
