/** The flags of a tunnel on the command line of the agent. */
import { type Command, Option } from 'commander'
import { aboutFlag, type FlagValue, flagsOf, flagValue, setFlag } from '../../link/options/take-flags.ts'
import type { TunnelFlag } from '../../link/options/tunnel-flags.ts'

export type TunnelCommand = 'http' | 'tcp' | 'tls'

/** Adds the flags of such a tunnel to `command`. */
export function addTunnelFlags(command: Command, kind: TunnelCommand): Command {
  for (const flag of flagsOf('agent', kind)) {
    const option = optionOf(flag)
    if (flag.takes !== undefined) {
      option.argParser((text: string, before: FlagValue[] | undefined) => [
        ...(flag.isMany && before ? before : []),
        flagValue(flag, text),
      ])
    }
    command.addOption(option)
  }
  return command
}

/** The tunnel that the flags describe, with the keys of the configuration file. */
export function tunnelOf(command: Command, kind: TunnelCommand, addr: string): Readonly<Record<string, unknown>> {
  const given = command.opts<Record<string, FlagValue | FlagValue[] | undefined>>()
  const tunnel: Record<string, unknown> = { addr }
  for (const flag of flagsOf('agent', kind)) {
    const value = given[optionOf(flag).attributeName()]
    for (const each of value === undefined ? [] : [value].flat()) setFlag(tunnel, flag, each)
  }
  // With labels, the edge decides the protocol of visitors.
  return tunnel.labels === undefined ? { proto: kind, ...tunnel } : tunnel
}

function optionOf(flag: TunnelFlag): Option {
  const takes = flag.isFile ? 'file' : flag.takes
  return new Option(`--${flag.name}${takes === undefined ? '' : ` <${takes}>`}`, aboutFlag(flag, 'agent'))
}
