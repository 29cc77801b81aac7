/** Finds words in names: of files, and of what stands in them. */
import ts from 'typescript5'

export interface BannedWord {
  readonly word: string
  /** The words to use instead. */
  readonly say: string
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
  /** The first banned word in it. */
  readonly banned: BannedWord
}

export function findBanned(
  sources: ReadonlyMap<string, string>,
  banned: readonly BannedWord[],
  kept: readonly KeptName[],
): Found[] {
  return [...sources].flatMap(([file, text]) => {
    const here = banned.filter(({ folders }) => isBelow(file, folders))
    // Most files have none of the words, and need not be parsed.
    const isParsed = here.some(({ word }) => text.toLowerCase().includes(word))
    const names = new Set([file, ...(isParsed ? identifiers(file, text) : [])])
    return [...names]
      .filter((name) => !kept.some((each) => each.name === name && isBelow(file, each.folders)))
      .flatMap((name) => {
        const found = here.find(({ word }) => wordsOf(name).some((each) => each === word || each === `${word}s`))
        return found ? [{ file, name, banned: found }] : []
      })
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
