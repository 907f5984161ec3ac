/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A reproducer of what docs/other-suites.md says of MPICH, for its users and
 * developers: no part of the main job, and nothing but MPI and the C library.
 *
 *   mpicc fragments.c -o fragments
 *   UCX_TLS=tcp UCX_RNDV_THRESH=inf mpiexec -n 2 ./fragments
 *
 * Rank 0 sends numbers of 16 bytes that lie in one piece, rank 1 puts them into
 * places that do not. UCP cuts the message into fragments, at any byte, and has
 * MPICH unpack each. The number in which a fragment ends is missing then. How
 * many are is printed; the exit status is 0 if none are, and 1 if some are.
 */

#include <mpi.h>

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A 16-byte number, and as many bytes between it and the next one */
enum { COUNT = 8192, STRIDE = 2 };

int main(int argc, char **argv)
{
    double complex *data;
    MPI_Datatype type;
    int rank, i, lost = 0, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_vector(COUNT, 1, STRIDE, MPI_C_DOUBLE_COMPLEX, &type);
    MPI_Type_commit(&type);
    data = calloc(COUNT * STRIDE, sizeof(*data));
    if (data == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    if (rank == 0) {
        for (i = 0; i < COUNT; ++i) {
            data[i] = (i + 1) + (i + 2) * I;
        }
        MPI_Send(data, COUNT, MPI_C_DOUBLE_COMPLEX, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        i = MPI_Recv(data, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_string(i, text, &length);
        for (i = 0; i < COUNT; ++i) {
            lost += data[i * STRIDE] != (i + 1) + (i + 2) * I;
        }
        printf("%d of %d numbers lost, MPI_Recv: %.*s\n", lost, COUNT,
               (int)strcspn(text, ",\n"), text);
    }

    MPI_Bcast(&lost, 1, MPI_INT, 1, MPI_COMM_WORLD);
    free(data);
    MPI_Type_free(&type);
    MPI_Finalize();
    return lost > 0;
}
