/** What a server may tell an agent to do: restart, stop and update itself. */
import type { UpdateCommand } from '../wire/messages/commands.ts'

export const commandNames = ['restart', 'stop', 'update'] as const

export type Command = (typeof commandNames)[number]

export interface CommandOutcome {
  /** Why it is not done; left out when it is. */
  readonly error?: string
  /** What to do once the answer is on its way. */
  readonly afterwards?: () => void
}

export interface CommandHandler {
  /** `''` when it can be done, else why not: told to the server when the agent authenticates. */
  readonly unsupported: string
  run(update?: UpdateCommand): CommandOutcome | Promise<CommandOutcome>
}

export type Commands = Readonly<Record<Command, CommandHandler>>

/** Never rejects. */
export async function runCommand(commands: Commands, name: Command, update?: UpdateCommand): Promise<CommandOutcome> {
  const handler = commands[name]
  if (handler.unsupported !== '') return { error: handler.unsupported }
  try {
    return await handler.run(update)
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

/** An agent that takes no commands, and why. */
export function noCommands(reason: string): Commands {
  const handler = { unsupported: reason, run: () => ({ error: reason }) }
  return { restart: handler, stop: handler, update: handler }
}
