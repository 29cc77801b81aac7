/** `postern policy`: commands for traffic policies. */
import { Command } from 'commander'
import { group } from './group.ts'
import { policyTestCommand } from './policy/policy-test.ts'
import type { Terminal } from './terminal.ts'

export function policyCommand(terminal: Terminal): Command {
  const command = new Command('policy').usage('<command> [options]')
  return group(command).addCommand(policyTestCommand(terminal))
}
