/** A command that only has subcommands: what it does without one, and the error for an unknown one. */
import type { Command } from 'commander'
import { nearest } from '../lib/text/nearest.ts'
import { misuse } from './command-failure.ts'

/** Makes `command` a group; `alone` runs when no subcommand is given, and shows the help by default. */
export function group(command: Command, alone: () => void = () => command.outputHelp()): Command {
  // commander would complain about too many arguments or about the flags, and not suggest the command that was meant.
  return command
    .allowExcessArguments()
    .allowUnknownOption()
    .helpCommand(false)
    .action(() => {
      const [first] = command.args
      if (first === undefined) alone()
      else if (first.startsWith('-')) throw misuse(unknown('option', first, optionNames(command), command))
      else throw misuse(unknown('command', first, commandNames(command), command))
    })
}

function unknown(what: string, word: string, known: readonly string[], command: Command): string {
  const meant = nearest(word, known)
  return `unknown ${what} '${word}'; ${meant ? `did you mean '${meant}'?` : `see \`${fullName(command)} --help\``}`
}

function commandNames(command: Command): readonly string[] {
  return command.commands.flatMap((each) => [each.name(), ...each.aliases()])
}

function optionNames(command: Command): readonly string[] {
  return ['--help', ...command.options.flatMap((option) => option.long ?? [])]
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name()
}
