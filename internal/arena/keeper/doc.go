// Package keeper keeps file descriptors on behalf of the blocks of a domain, so that messages can
// carry files: the process that made the domain runs a [Keeper], and every process may be a
// [Client].
package keeper
