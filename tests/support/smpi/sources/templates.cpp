/* What the loader keeps one instance of: statics of templates and of inline functions. */
#include <mpi.h>
template <class Element> struct Table { static int size; };
template <class Element> int Table<Element>::size = 1;
template <class Element> int counted() {
    static int times = 0;
    return ++times;
}
int main(int count, char **words) {
    int me;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    Table<int>::size += counted<int>() + me;
    MPI_Finalize();
    return 0;
}
