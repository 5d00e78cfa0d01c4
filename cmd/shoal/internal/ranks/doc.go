// Package ranks runs a program as the ranks of a job: as processes of this machine, by ssh on
// others, or by the launcher of an MPI library. The first rank that fails ends the others, and its
// exit status is that of the job.
package ranks
