/** `postern start`: starts the tunnels of the configuration file, all or the named ones. */
import { Command } from 'commander'
import type { AgentConfig } from '../../agent/config/connection.ts'
import type { TunnelPlans } from '../../agent/config/tunnel-options.ts'
import { nearest } from '../../lib/text/nearest.ts'
import { Failure, misuse } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { addAgentFlags, agentConfigOf, outputOf } from './connection-flags.ts'
import { type RunParts, runAgent } from './run.ts'

const examples = `
Examples:
  postern start
  postern start web ssh
  postern start --config /etc/postern/agent.yml --log-format json
  postern start --config ~/.config/ngrok/ngrok.yml`

/** `parts` are for tests. */
export function startCommand(terminal: Terminal, parts?: Partial<RunParts>): Command {
  const command = new Command('start')
    .description('start tunnels of the configuration file')
    .argument('[names...]', 'tunnels to start (default: all)')
    .option('--all', 'start all tunnels')
  return addAgentFlags(command)
    .addHelpText('after', examples)
    .action(async (names: string[], { all }: { all?: true }) => {
      if (all && names.length > 0) throw misuse('name tunnels or give --all, not both')
      const read = async () => {
        const config = await agentConfigOf(command, terminal)
        return { config, tunnels: choosePlans(config, names) }
      }
      await runAgent({ ...(await read()), output: outputOf(command), again: read }, terminal, parts)
    })
}

/** The tunnels with these names, or all of them. */
function choosePlans({ tunnels, tunnelFile }: AgentConfig, names: readonly string[]): TunnelPlans[] {
  if (tunnels.size === 0) {
    throw new Failure(`there are no tunnels in ${tunnelFile}; add one under \`tunnels\`, or use \`postern http\``)
  }
  const wanted = names.length > 0 ? names : [...tunnels.keys()]
  return wanted.map((name) => tunnels.get(name) ?? unknown(name, [...tunnels.keys()]))
}

function unknown(name: string, known: readonly string[]): never {
  const meant = nearest(name, known)
  throw misuse(`there is no tunnel '${name}'; ${meant ? `did you mean '${meant}'?` : `there are ${known.join(', ')}`}`)
}
