UGLY=()
