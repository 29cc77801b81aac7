/** Finds the rules that comments, titles and pages cite by number, and the numbers that pages define. */

/** Numbers of rules (`R-3.2`) and decisions (`D28a`), and ranges of them (`D8 to D11`). */
const numbered = /(?<![%\w])(R-\d+\.|D)(\d{1,3})([a-z]?)(?: to \1(\d{1,3}))?\b/g

/** `contract 4.7`, `contract 2.8, 2.9 and 2.11`, `contract part 8`, `contract 2.3, rules 2 to 5`. */
const ofContract =
  /\bcontract (?:parts? )?(\d(?:\.\d+)?(?:(?:, | and )\d(?:\.\d+)?)*)(?:,? rules? (\d)(?: to (\d))?)?/gi

/** `parts 5 and 9 of the contract`. */
const partsOfContract = /\bparts? (\d(?: and \d)*) of the contract\b/gi

/** Sections of public documents, such as RFCs. */
const ofOutsiders =
  /(?:RFC \d+(?:bis)?|X\.690|SAML (?:2\.0 )?\w+|XML 1\.0|Namespaces in XML|OpenID Connect Core|PROXY protocol|openssh\/PROTOCOL) §[\w.]+(?:(?:,| to| and) §[\w.]+)*/g

/** All citations in `text`: `R-3.2`, `D28`, `contract 4.7`, `contract 4.3 rule 4`, or a `§` without a known document. */
export function findCitations(text: string): string[] {
  const flat = text.replace(/\n[ \t]*(?:\*|\/\/|>)?[ \t]*/g, ' ')
  const found: string[] = []
  for (const [, kind = '', first = '', letter = '', last] of flat.matchAll(numbered)) {
    if (last === undefined) found.push(`${kind}${first}${letter}`)
    else found.push(...range(first, last).map((number) => `${kind}${number}`))
  }
  for (const [, sections = '', first, last] of flat.matchAll(ofContract)) {
    const names = sections.split(/, | and /).map((section) => `contract ${section}`)
    found.push(...names)
    if (first !== undefined) found.push(...range(first, last ?? first).map((rule) => `${names.at(-1)} rule ${rule}`))
  }
  for (const [, parts = ''] of flat.matchAll(partsOfContract)) {
    found.push(...parts.split(' and ').map((part) => `contract ${part}`))
  }
  for (const [lost] of flat.replace(ofOutsiders, '').matchAll(/§ ?[\w.]*/g)) found.push(lost)
  return found
}

function range(first: string, last: string): number[] {
  return Array.from({ length: Number(last) - Number(first) + 1 }, (_, i) => Number(first) + i)
}

/** The numbers that begin a row of a table: `| D28 | … |`. */
export function definedInRows(page: string): string[] {
  return Array.from(page.matchAll(/^\| (R-\d+\.\d+|D\d+[a-z]?) \| (?=\S)/gm), ([, number = '']) => number)
}

/** The sections of the contract, `## Part 4: …` and `### 4.7 …`, and the rules that are numbered in them. */
export function definedInSections(page: string): string[] {
  const defined: string[] = []
  let section = ''
  for (const line of page.split('\n')) {
    const [, heading] = /^#{2,3} (?:Part )?(\d(?:\.\d+)?)[: ]/.exec(line) ?? []
    const [, rule] = /^(\d)\. \S/.exec(line) ?? []
    if (heading !== undefined) section = `contract ${heading}`
    if (heading !== undefined) defined.push(section)
    else if (rule !== undefined) defined.push(`${section} rule ${rule}`)
  }
  return defined
}
