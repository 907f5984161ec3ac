// SPDX-License-Identifier: BSD-3-Clause
package ai.rapids.cudf;

/** What UCX's tests in Java name of a package for GPUs. There are none: nobody calls it. */
public class Cuda {
    public static void setDevice(int device) {
        throw new UnsupportedOperationException();
    }

    public static void deviceSynchronize() {
        throw new UnsupportedOperationException();
    }
}
