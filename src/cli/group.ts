/** A command that only holds others: what it does alone, and what it says to a name it does not have. */
import type { Command } from 'commander'
import { nearest } from '../lib/text/nearest.ts'
import { misuse } from './failure.ts'

/** Makes `command` a group; `alone` runs when nothing follows its name, and shows the help if left out. */
export function group(command: Command, alone: () => void = () => command.outputHelp()): Command {
  // commander would complain of too many arguments or of the flags, and not say which command was meant.
  return command
    .allowExcessArguments()
    .allowUnknownOption()
    .helpCommand(false)
    .action(() => {
      const [first] = command.args
      const word = command.args.find((arg) => !arg.startsWith('-'))
      if (word !== undefined) throw misuse(unknown('command', word, commandNames(command), command))
      if (first !== undefined) throw misuse(unknown('option', first, optionNames(command), command))
      alone()
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
