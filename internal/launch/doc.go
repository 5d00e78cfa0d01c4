// Package launch is what the starter of a job tells its processes by environment variables: which
// rank a process is, of how many, and how many of them are on its machine. Package dist reads it,
// and shoal run writes it.
package launch
