/** Estimates from the text of a regular expression what it costs to compile and keep. */

/**
 * A close upper bound of the instructions that an RE2 pattern compiles to, with character classes priced by their ranges;
 * meaningless for invalid patterns. Takes one pass over the text, so no pattern is expensive to price.
 */
export function patternPrice(pattern: string): number {
  return new Pricing(pattern).whole()
}

/** The price of all patterns together; stops adding once it exceeds `LOOP_PRICE`. */
export function totalPrice(patterns: Iterable<string>): number {
  let price = 0
  for (const pattern of patterns) {
    price += patternPrice(pattern)
    if (price > LOOP_PRICE) break
  }
  return price
}

/** Patterns of one document up to this price are compiled on the event loop, in 2 ms or so; costlier ones elsewhere. */
export const LOOP_PRICE = 1000
/** The price of work that never runs on the event loop: loading the readers of CEL and YAML alone takes 0.1 s. */
export const NEVER_HERE = Number.POSITIVE_INFINITY

/** How many ranges cost as much to compile as one instruction. */
const RANGES_PER_INSTRUCTION = 5
/** The same for the repetitions of a class, whose ranges have been read before. */
const REPEATED_RANGES_PER_INSTRUCTION = 16
/** How many characters are case-folded in the time of one instruction: folding a range goes through all of them. */
const FOLDED_PER_INSTRUCTION = 25

/** The most ranges that a general category such as `\pL` has, and that a script such as `\p{Greek}` has. */
const CATEGORY_RANGES = 750
const SCRIPT_RANGES = 200
/** The most ranges that `\d`, `[:alpha:]` and the like have, their other cases included. */
const PERL_RANGES = 6

/** The first and the last character that have another case. */
const FIRST_FOLDED = 0x41
const LAST_FOLDED = 0x1e943

/** The cost of finding the other cases of a character beyond ASCII, in instructions. */
const FOLDED_CHARACTER = 40
const LAST_ASCII = 0x7f

/** The cost of an atom: once for its text, and for each repetition. */
interface Price {
  readonly once: number
  readonly each: number
}

class Pricing {
  readonly #text: string
  /** Whether any part ignores case; then everything is priced as if it did. */
  readonly #folds: boolean
  #at = 0
  #once = 0

  constructor(text: string) {
    this.#text = text
    this.#folds = /\(\?[a-zA-Z]*i/.test(text)
  }

  whole(): number {
    const outer: number[] = []
    let sum = 0
    let last = 0
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]
      const times = char === '{' ? this.#repetition() : undefined
      if (times !== undefined) {
        sum += last * (times - 1)
        last *= times
      } else if (char === '(') {
        this.#at++
        this.#skip(groupHead)
        outer.push(sum)
        sum = last = 0
      } else if (char === ')') {
        this.#at++
        last = sum + 2
        sum = (outer.pop() ?? 0) + last
      } else if (this.#text.startsWith('\\Q', this.#at)) {
        sum += this.#quoted()
        last = 1
      } else {
        const price = char === '[' ? this.#classPrice() : char === '\\' ? this.#escapePrice() : this.#character()
        this.#once += price.once
        last = price.each
        sum += last
      }
    }
    return Math.ceil(outer.reduce((total, each) => total + each, sum) + this.#once)
  }

  /** How many times the last atom is compiled; undefined when the brace is not a repetition. */
  #repetition(): number | undefined {
    const [text, least, most] = this.#match(repetition) ?? []
    if (text === undefined) return undefined
    this.#at += text.length
    return Math.max(1, Number(most || least))
  }

  #quoted(): number {
    const end = this.#text.indexOf('\\E', this.#at + 2)
    const length = (end < 0 ? this.#text.length : end) - this.#at - 2
    this.#at = end < 0 ? this.#text.length : end + 2
    return length
  }

  #character(): Price {
    const { code } = this.#ordinary()
    return { once: this.#folds && code > LAST_ASCII ? FOLDED_CHARACTER : 0, each: 1 }
  }

  #escapePrice(): Price {
    const ranges = this.#namedRanges()
    return ranges === undefined ? this.#character() : priceOf(ranges)
  }

  /** Reads from `[` past its `]`, or to the end of the text. */
  #classPrice(): Price {
    this.#at++
    this.#skip(classHead)
    let ranges = 0
    for (let char = this.#text[this.#at]; char !== undefined && char !== ']'; char = this.#text[this.#at]) {
      if (char === '[' && this.#skip(posixClass)) ranges += PERL_RANGES
      else ranges += (char === '\\' ? this.#namedRanges() : undefined) ?? this.#range()
    }
    this.#at++
    return priceOf(ranges)
  }

  /** One character of a class, or a range of them. */
  #range(): number {
    const from = this.#ordinary()
    if (this.#text[this.#at] !== '-' || this.#text[this.#at + 1] === ']') return from.ranges
    this.#at++
    if (this.#at >= this.#text.length) return from.ranges
    const to = this.#ordinary()
    if (this.#folds) {
      const folded = Math.min(to.code, LAST_FOLDED) - Math.max(from.code, FIRST_FOLDED)
      this.#once += Math.max(0, folded) / FOLDED_PER_INSTRUCTION
    }
    // Folding adds more ranges, few of which are adjacent.
    return this.#folds ? Math.min(2 * CATEGORY_RANGES, Math.max(1, to.code - from.code)) : 1
  }

  /** The ranges of `\pL`, `\P{Greek}`, `\d` and the like; undefined for any other escape. */
  #namedRanges(): number | undefined {
    const [text, name] = this.#match(unicodeClass) ?? []
    if (text === undefined) return this.#skip(perlClass) ? PERL_RANGES : undefined
    this.#at += text.length
    const isScript = (name ?? '').replace('^', '').length > 2 && name !== 'Assigned'
    return (isScript ? SCRIPT_RANGES : CATEGORY_RANGES) * (this.#folds ? 2 : 1)
  }

  /** One character, plain or escaped, which may have other cases. */
  #ordinary(): { readonly code: number; readonly ranges: number } {
    const ranges = this.#folds ? 4 : 1
    if (this.#text[this.#at] === '\\') {
      const [escaped, long, short] = this.#match(hexadecimal) ?? []
      if (escaped !== undefined) {
        this.#at += escaped.length
        return { code: Number.parseInt(long ?? short ?? '0', 16), ranges }
      }
      this.#at++
    }
    const code = this.#text.codePointAt(this.#at) ?? 0
    this.#at += code > 0xffff ? 2 : 1
    return { code, ranges }
  }

  #skip(pattern: RegExp): boolean {
    const [text] = this.#match(pattern) ?? []
    this.#at += text?.length ?? 0
    return text !== undefined && text !== ''
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#text)
  }
}

function priceOf(ranges: number): Price {
  return ranges <= 1
    ? { once: 0, each: 1 }
    : { once: ranges / RANGES_PER_INSTRUCTION, each: 1 + ranges / REPEATED_RANGES_PER_INSTRUCTION }
}

// Each matches a bounded number of characters, so that pricing stays linear.
const repetition = /\{(\d{1,9})(?:,?)(\d{0,9})\}/y
const groupHead = /\?(?:P?<\w{0,64}>|[a-zA-Z-]{0,16}:?)/y
const classHead = /\^?\]?/y
const posixClass = /\[:\^?\w{0,16}:\]/y
const unicodeClass = /\\[pP](?:\{([^}]{0,32})\}|[^{])/y
const perlClass = /\\[dDsSwW]/y
const hexadecimal = /\\x(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{2}))/y
