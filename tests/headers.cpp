// The program whose precompiled header the tests read: cmake/BitnetTest.cmake.
int main() {}
