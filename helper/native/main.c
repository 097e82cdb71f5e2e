/*
 * main.c: workspace-runner-native, the one program that runs with the service's rights and is not TypeScript.
 *
 * Purpose    Chooses the mode.
 *              init <gateway uid> <gateway gid> <node> <worker main.js> <gateway main.js>
 *              spawner <socket path> <lock path>
 *              peercred                        (descriptor 3 is a connection)
 *              usage <entries> <listed> <milliseconds>   (SPACE=<path> in the environment)
 * Rights     As started: root with CAP_CHOWN, CAP_SETGID, CAP_SETUID; peercred needs none, and usage runs as a user.
 * Called by  deploy/cli.ts (init), worker/ (spawner, peercred; usage by way of the spawner).
 * Fails      with exit status 64 and one sentence for an unknown mode.
 */
#include <string.h>

#include "init.h"
#include "peercred.h"
#include "say.h"
#include "spawner.h"
#include "usage.h"

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "init") == 0)
		return init_main(argv + 2);
	if (argc == 4 && strcmp(argv[1], "spawner") == 0)
		return spawner_main(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "peercred") == 0)
		return peercred_main();
	if (argc == 5 && strcmp(argv[1], "usage") == 0)
		return usage_main(argv + 2);
	say_as("native");
	say("usage: init <uid> <gid> <node> <worker> <gateway> | spawner <socket> <lock> | peercred | "
	    "usage <entries> <listed> <milliseconds>");
	return 64;
}
