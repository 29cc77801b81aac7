/** `postern http`, `postern tcp`, `postern tls`: one tunnel to one service, described by flags. */
import { Command } from 'commander'
import { describeProblem } from '../../agent/config/config-error.ts'
import { textReader } from '../../agent/config/text-files.ts'
import { readTunnel, type TunnelPlans } from '../../agent/config/tunnel-options.ts'
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { flagFor } from '../../link/options/take-flags.ts'
import { SettingsError } from '../../server/config/settings-error.ts'
import type { Terminal } from '../terminal.ts'
import { addAgentFlags, agentConfigOf, outputOf } from './connection-flags.ts'
import { addTunnelFlags, type TunnelCommand, tunnelOf } from './flags.ts'
import { type RunParts, runAgent } from './run.ts'

interface About {
  readonly about: string
  readonly examples: string
}

const kinds: Readonly<Record<TunnelCommand, About>> = {
  http: {
    about: 'give a web service on this machine a public address',
    examples: `
Examples:
  postern http 3000
  postern http https://localhost:8443 --domain app.example.com
  postern http 3000 --basic-auth ada:engine --cidr-allow 192.0.2.0/24
  postern http 3000 --oauth github --oauth-client-id Ov23liAbc --oauth-allow-domain example.com
  postern http 3000 --label app=shop`,
  },
  tcp: {
    about: 'give a TCP service on this machine a public port',
    examples: `
Examples:
  postern tcp 22
  postern tcp db.internal:5432 --remote-addr tunnels.example.com:20001
  postern tcp unix:/run/app.sock --cidr-allow 192.0.2.0/24`,
  },
  tls: {
    about: 'give a TLS service on this machine a public name; TLS passes through',
    examples: `
Examples:
  postern tls 443 --domain app.example.com
  postern tls 8080 --domain app.example.com --terminate-at edge`,
  },
}

/** `parts` are for tests. */
export function tunnelCommand(kind: TunnelCommand, terminal: Terminal, parts?: Partial<RunParts>): Command {
  const { about, examples } = kinds[kind]
  const command = new Command(kind)
    .description(about)
    .argument('<address>', 'port, host:port, URL or unix:/path of the service')
  addAgentFlags(addTunnelFlags(command, kind))
  return command.addHelpText('after', examples).action(async (address: string) => {
    const plans = plansOf(tunnelOf(command, kind, address), kind, terminal)
    const config = await agentConfigOf(command, terminal, { hasTunnel: true })
    await runAgent({ config, tunnels: [plans], output: outputOf(command) }, terminal, parts)
  })
}

function plansOf(tunnel: Readonly<Record<string, unknown>>, name: string, { cwd, env }: Terminal): TunnelPlans {
  const problems: Problem[] = []
  const plans = readTunnel(new OptionReader(tunnel, problems), { name, readText: textReader(cwd), env })
  if (plans && problems.length === 0) return plans
  throw new SettingsError(problems.map((problem) => inFlags(problem)))
}

function inFlags(problem: Problem): string {
  const flag = problem.path[0] === 'addr' ? 'the address' : flagFor(problem.path, 'agent')
  return flag === undefined ? describeProblem(problem) : `${flag} ${problem.fault}`
}
