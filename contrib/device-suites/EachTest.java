// SPDX-License-Identifier: BSD-3-Clause
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs JUnit tests of the classes that are named, and prints a line for each. */
public class EachTest extends RunListener {
    private String state;

    private static void say(String what) {
        System.out.println("\nEachTest: " + what);
    }

    @Override
    public void testStarted(Description test) {
        state = "passed";
    }

    @Override
    public void testFailure(Failure failure) {
        state = "failed";
        System.out.println(failure.getTrace());
        // Of a class that can't be set up, no test is started
        if (!failure.getDescription().isTest()) {
            say("failed " + failure.getDescription().getDisplayName());
        }
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
        state = "skipped";
    }

    @Override
    public void testIgnored(Description test) {
        say("skipped " + test.getDisplayName());
    }

    @Override
    public void testFinished(Description test) {
        say(state + " " + test.getDisplayName());
    }

    public static void main(String[] names) throws ClassNotFoundException {
        JUnitCore core = new JUnitCore();
        core.addListener(new EachTest());
        for (String name : names) {
            core.run(Class.forName(name));
        }
        say("end");
    }
}
