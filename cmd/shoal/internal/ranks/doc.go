// Package ranks runs a program as the ranks of a job: as processes on this machine, over ssh on
// other machines, or through the launcher of an MPI library. When a rank fails, the others are
// terminated, and the job's exit status should be the status of that rank.
package ranks
