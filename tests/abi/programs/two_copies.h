typedef void wait_function(int peer);
typedef void main_function(int rank, int turns);
