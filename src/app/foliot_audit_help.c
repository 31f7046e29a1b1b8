/* foliot_audit_help.c: for each form of `foliot audit`: what it does, what it prints, its exit statuses. `foliot audit WORD
 * --help` prints them. The manual has the same sentences (man/foliot.1.scd); a test compares them. */
#include "app/foliot_command.h"

#define PASSES "0 all that applies passes; 1 a check fails, or one warns and none is unknown; "
#define GATE_EXITS                                                                                 \
    "0 pass; 1 warn; 2 fail, or wrong usage; 3 unknown. With slurm: 0 pass or warn, 1 all else. "  \
    "With npd: 0 pass or warn, 1 fail, 2 unknown"
#define TABLE_EXITS "0 printed; 2 wrong usage, or no such audit; 3 the controller does not answer"

const struct command_word audit_words[] = {
    {"run", "Reads this host and judges it by all checks, and reads it once more if a check fails.",
     "whether it may take a job, the tree of checks with counts, each failure and warning with "
     "what to do, and what is unknown and why.",
     PASSES "2 wrong usage, or a mistake in audit.yaml; 3 none fails and one is unknown, or the "
            "host could not be read"},
    {"show", "Judges sheets that 'foliot audit facts' wrote: of one host, or of many.",
     "the same as 'run', of all these hosts.",
     PASSES "2 wrong usage, a mistake in audit.yaml, or a file that is no sheet; 3 none fails and "
            "one is unknown, or a file could not be read"},
    {"gate", "Reads this host and answers whether it may take a job, by the checks that block.",
     "one line: the host, the answer, and the check that decides. FORM is text, json, slurm, "
     "nagios or npd.",
     GATE_EXITS},
    {"facts", "Reads this host and judges nothing.",
     "a sheet of all facts in JSON, for 'show', '--facts' and 'test'.",
     "0 written; 2 wrong usage; 3 the host could not be read, or the file not written"},
    {"capture",
     "Copies all that an audit reads of this host into a new folder, without serial numbers, "
     "addresses and names.",
     "how many files there are, and how to look through them.",
     "0 written; 2 wrong usage; 3 the host could not be read, or the folder not written"},
    {"checks", "Lists the checks.", "a table: what passes each, and what a failure is worth.",
     "0 printed; 2 wrong usage"},
    {"explain", "Explains one check.", "what it reads, why it matters, what to do.",
     "0 printed; 2 there is no such check"},
    {"test", "Judges kept sheets once as they are set, and once with the limits that you name.",
     "counts of both, and each result that would change.",
     "0 no result would change; 1 some would; 2 wrong usage, no such check, or a file that is no "
     "sheet; 3 a file could not be read"},
    {"run --fleet",
     "Lets each host of the fleet, or those that you name, read itself, and judges them together. "
     "Hosts with a failure are read twice.",
     "which hosts may take no job or were not read, the tree, each failure and warning with what "
     "to "
     "do, and what is unknown and why.",
     PASSES "2 wrong usage, or no such host; 3 none fails and one is unknown, or the controller "
            "does not answer"},
    {"show --fleet", "Shows a run that is over or under way; without RUN the newest.",
     "the same as 'run --fleet'.",
     PASSES "2 wrong usage, or no such audit; 3 none fails and one is unknown, or the controller "
            "does not answer"},
    {"gate --fleet",
     "Answers whether a host may take a job, by the facts that the controller has. It reads "
     "nothing.",
     "one line: the host, the answer, and the check that decides. FORM is text, json, slurm, "
     "nagios or npd.",
     GATE_EXITS},
    {"test --fleet",
     "Judges the audits of the last days once as they were, and once with the limits that you "
     "name. "
     "The controller keeps their sheets for eight days, and those of accepted audits.",
     "of each audit counts of both, and each result that would change.",
     "0 no result would change; 1 some would; 2 wrong usage, or no such check; 3 no sheets of that "
     "time are kept, or the controller does not answer"},
    {"nodes", "Shows the hosts of a run; without RUN the newest.",
     "a line for each host, those that may not take a job first.", TABLE_EXITS},
    {"matrix", "Shows what a run with --matrix measured; without RUN the newest such run.",
     "a line for each NIC: what is not measured, losses, its part of all delays.", TABLE_EXITS},
    {"runs", "Lists the audits of the fleet.",
     "a line for each: when it began, its state, who began it, how many hosts were not read.",
     TABLE_EXITS},
    {"stop", "Ends an audit that is under way.", "that it ended, and by whom.",
     "0 ended; 1 it is over already; 2 no such audit; 3 the controller does not answer"},
    {"diff", "Compares two runs. latest and baseline may stand for a run.",
     "a line for each fact, each measurement and each check's status that changed, and hosts that "
     "only one of them has read.",
     "0 nothing differs; 1 something does; 2 no such audit; 3 the controller does not answer"},
    {"baseline",
     "Alone: compares the newest run with the accepted one. It also accepts, lists and removes "
     "such runs.",
     "the accepted runs; alone: who accepted the newest one and when, and what changed since.",
     "alone: 0 nothing changed; 1 something did. Else 0 done. 2 wrong usage, or no such audit; 3 "
     "no "
     "run is accepted, or the controller does not answer"},
    {0}};
