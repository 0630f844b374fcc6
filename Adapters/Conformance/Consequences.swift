extension ConformanceReport.Result {
  /// What it would mean for a household if this claim does not hold, for people. Empty for a case this version does not
  /// know.
  public var consequence: String {
    switch name {
    case "absent": "Objects that are not there would be taken for damaged ones, or the other way round."
    case "sizes", "byte-values": "The store changes what it is given: nothing kept there could be opened."
    case "names": "The store does not take the names of Latchkey's objects."
    case "ranges": "Parts of objects could not be read: everything would be fetched whole."
    case "delete": "What is deleted would come back, or could not be cleaned up."
    case "create-same": "A write that is repeated after a lost answer would be taken for somebody else's."
    case "create-different": "The store overwrites: a mistaken or hostile writer could replace what others wrote."
    case "create-race", "create-race-same":
      "Two devices that write at the same moment would not agree on what is there."
    case "read-after-write": "Devices would see each other's changes late, and wait for what is there already."
    case "whole-or-nothing": "A device could read half of an object while another is writing it."
    case "list-empty", "list-prefix", "list-order", "list-after", "list-many", "list-insert":
      "Devices would overlook objects, or see them twice."
    case "list-bad": "The adapter asks the store for what no store has."
    case "debris": "Other programs' files would be taken for Latchkey's, or deleted."
    case "too-large": "Objects could be sent that cannot be read again."
    case "cancelled": "Ctrl-C would leave things half done."
    case "marker": "The store could not be told from an empty or unmounted place."
    case "reopen": "The store does not bear that devices come and go."
    default: ""
    }
  }
}
