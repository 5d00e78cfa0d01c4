// The library's own loop: all-reduces of so many bytes of float32, as often as the second argument
// says, for each pair of arguments. Rank 0 prints nanoseconds for each, of the slowest rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 1; i + 1 < argc; i += 2) {
		size_t bytes = strtoull(argv[i], 0, 10);
		int rounds = atoi(argv[i + 1]);
		float *x = calloc(bytes / 4, 4);
		for (int k = 0; k < 2 + rounds / 10; k++)
			MPI_Allreduce(MPI_IN_PLACE, x, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		for (int k = 0; k < rounds; k++)
			MPI_Allreduce(MPI_IN_PLACE, x, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		double mine = (MPI_Wtime() - begin) / rounds * 1e9, slowest;
		MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("%.0f\n", slowest);
		free(x);
	}
	MPI_Finalize();
	return 0;
}
