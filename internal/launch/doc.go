// Package launch handles the environment variables that describe the place of a process in a
// distributed job: its rank, the number of ranks, and the number of ranks on its machine. The
// launcher of the job sets them. Package dist reads them. shoal run, a launcher, sets them.
package launch
