/** Finds words in names: of files, and of what stands in them. */
import ts from 'typescript5'

export interface BannedWord {
  readonly word: string
  /** Where it is banned: beginnings of paths. */
  readonly folders: readonly string[]
}

interface KeptName {
  readonly name: string
  /** Where it is allowed: beginnings of paths. */
  readonly folders: readonly string[]
}

interface Found {
  readonly file: string
  readonly name: string
}

export function findBanned(
  sources: ReadonlyMap<string, string>,
  banned: readonly BannedWord[],
  kept: readonly KeptName[],
): Found[] {
  return [...sources].flatMap(([file, text]) => {
    const words = banned.filter(({ folders }) => isBelow(file, folders)).flatMap(({ word }) => [word, `${word}s`])
    // Most files have none of the words, and need not be parsed.
    const isParsed = words.some((word) => text.toLowerCase().includes(word))
    const names = new Set([file, ...(isParsed ? identifiers(file, text) : [])])
    return [...names]
      .filter((name) => wordsOf(name).some((word) => words.includes(word)))
      .filter((name) => !kept.some((each) => each.name === name && isBelow(file, each.folders)))
      .map((name) => ({ file, name }))
  })
}

function isBelow(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => file.startsWith(folder))
}

/** `#openDoor` is `open` and `door`. */
function wordsOf(name: string): string[] {
  const words = name.split(/[^A-Za-z0-9]|(?<=[a-z0-9])(?=[A-Z])/)
  return words.map((word) => word.toLowerCase())
}

function identifiers(file: string, text: string): Set<string> {
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) names.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest))
  return names
}
