// The JVM has a SIGSEGV handler of its own, for null pointers and safepoints: SHIM MODEL.
public class Jvm {
    static native int round(String model, int rounds);

    static class Node {
        int value;
    }

    static int read(Node node) {
        return node.value; // compiled: a null pointer here is a fault
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        int[] made = new int[2];
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            final int at = i;
            threads[i] = new Thread(null, () -> made[at] = round(arguments[1], 50), "small", 256 * 1024);
            threads[i].start();
        }
        long sum = 0, nulls = 0;
        Node node = new Node();
        for (int i = 0; i < 2000000 || threads[0].isAlive(); i++) {
            try {
                sum += read(i % 100000 == 7 ? null : node);
            } catch (NullPointerException expected) {
                nulls++;
            }
            if (i % 200000 == 0) System.gc();
        }
        for (Thread thread : threads) thread.join();
        if (made[0] != 50 || made[1] != 50 || nulls < 10) throw new Error(made[0] + " " + made[1] + " " + nulls + sum);
        System.out.println("ok");
    }
}
