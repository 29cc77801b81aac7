/** What a server may tell an agent to do: restart, stop and update itself. */
import type { UpdateCommand } from '../link/wire/messages/command-messages.ts'

export const commandNames = ['restart', 'stop', 'update'] as const

export type Command = (typeof commandNames)[number]

export interface CommandOutcome {
  /** Why the command was not carried out; omitted on success. */
  readonly error?: string
  /** What to do after the answer has been sent. */
  readonly afterwards?: () => void
}

export interface CommandHandler {
  /** Why the command is not supported, or `''` if it is; sent to the server when the agent authenticates. */
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

/** Refuses all commands, with the reason. */
export function noCommands(reason: string): Commands {
  const handler = { unsupported: reason, run: () => ({ error: reason }) }
  return { restart: handler, stop: handler, update: handler }
}

/** The same commands; calls `onRun` for each one that was run, with its error or `''`. */
export function reportedCommands(commands: Commands, onRun: (name: Command, error: string) => void): Commands {
  const reported = (name: Command): Commands[Command] => ({
    unsupported: commands[name].unsupported,
    run: async (update) => {
      const outcome = await commands[name].run(update)
      onRun(name, outcome.error ?? '')
      return outcome
    },
  })
  return { restart: reported('restart'), stop: reported('stop'), update: reported('update') }
}
