// Blocks have no name: what is in one is not in the class or the namespace that was declared before it.
int outside = 1;

int one(int argument) {
    static int plain = 2;
    struct Local {
        static int *own() {
            static int deep = 3;
            return &deep;
        }
    };
    {
        static int in_block = 4;
        struct Empty;
        {
            static int further_in = 5;
            argument += further_in++;
        }
        struct Inner {
            int member;
            int get() {
                static int of_inner = 6;
                return member + of_inner++;
            }
        } inner = {argument};
        {
            static int behind_inner = 7;
            argument += inner.get() + behind_inner++ + in_block++;
        }
    }
    return argument + plain++ + ++*Local::own();
}

namespace spaces {
struct Declared;
static int in_space = 8;
struct Whole {
    int member;
    static int shared;
    int get() {
        {
            static int of_whole = 9;
            member += of_whole++;
        }
        return member;
    }
};
int Whole::shared = 10;
} // namespace spaces
static int behind_all = 11;

int main(int argc, char **) {
    spaces::Whole whole = {argc};
    return one(argc) + whole.get() + spaces::in_space++ + behind_all++ + outside + spaces::Whole::shared;
}
